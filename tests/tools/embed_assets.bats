# The dashboard's files as a table in C.
bats_require_minimum_version 1.5.0


setup()
{
    cd "$BATS_TEST_TMPDIR"
    mkdir -p site
    printf '<script src="/assets/app.js"></script>\n' >site/index.html
    printf 'export {};\n' >site/app.js
}

embed()
{
    "$HOLDFAST_SOURCE/tools/embed_assets.py" site table.c --depfile table.d
}

version()
{
    sed -n 's/^const char hf__assets_version\[\] = "\(.*\)";$/\1/p' table.c
}

# bytes NAME: the file as it would be served.
bytes()
{
    python3 - "$1" <<'PYTHON'
import gzip, re, sys
table = open("table.c").read()
number = re.search(r'\{ "%s", [^,]*, bytes_(\d+)' % re.escape(sys.argv[1]), table)[1]
numbers = re.search(r"bytes_%s\[\] = \{(.*?)\};" % number, table, re.DOTALL)[1]
sys.stdout.buffer.write(gzip.decompress(bytes(int(n) for n in numbers.split(","))))
PYTHON
}

@test "the page's addresses have the version, and the files are as they were" {
    embed
    [ "$(bytes index.html)" = "<script src=\"/assets/$(version)/app.js\"></script>" ]
    [ "$(bytes app.js)" = 'export {};' ]
}

@test "the version changes with any file, and with nothing else" {
    embed
    first=$(version)
    touch site/app.js
    embed
    [ "$(version)" = "$first" ]
    echo '/* more */' >>site/app.js
    embed
    [ "$(version)" != "$first" ]
}

@test "a new file makes the table anew" {
    embed
    grep -qF "site " table.d
    grep -qF "site/app.js" table.d
}

@test "a file of an unknown kind is refused" {
    echo x >site/notes.txt
    run ! embed
    [[ "$output" == *"notes.txt: a file of this kind is not served"* ]]
}

@test "the dashboard is small" {
    [ "$(cat "$HOLDFAST_SOURCE"/dashboard/* | wc -c)" -lt 220000 ]
}
