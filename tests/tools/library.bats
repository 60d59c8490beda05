# What the built library and program look like from outside.

shared_library()
{
    find "$HOLDFAST_BUILD/src" -maxdepth 1 -name 'libholdfast.so.*.*' -type f
}

# Names and versions, without the version's own entry.
symbols()
{
    nm --dynamic --defined-only --format=posix "$(shared_library)" | awk '{ print $1 }' | grep -v '^HOLDFAST_0\(@\|$\)' | sort
}

exported()
{
    symbols | sed 's/@.*//'
}

declared()
{
    cat "$HOLDFAST_SOURCE"/include/holdfast/*.h | tr '\n' ' ' |
        grep -oE 'HF_PUBLIC[^;{]*\(' | grep -oE '\bhf_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u
}

@test "the shared library exports public names only" {
    run bash -c "$(declare -f shared_library symbols exported); exported | grep -vE '^hf_[a-z0-9]'"
    echo "$output"
    [ -z "$output" ]
}

@test "every symbol of the shared library has the version that goes with its soversion" {
    [ "$(symbols | wc -l)" -gt 40 ]
    run bash -c "$(declare -f shared_library symbols); symbols | grep -vE '@@HOLDFAST_0$'"
    echo "$output"
    [ -z "$output" ]
    objdump -p "$(shared_library)" | grep -qE '^ +SONAME +libholdfast.so.0$'
}

@test "every function of the public headers is exported, and nothing more" {
    [ -n "$(declared)" ]
    diff <(declared) <(exported)
}

# Those that are about the store, or about whoever opens it, and not about one tenant's belongings.
store_wide="hf_open hf_open_as hf_close hf_schema hf_store_now hf_tenant_create hf_tenant_disable hf_tenant_list hf_tenant_grant
hf_tenant_revoke hf_token_create hf_worker_new hf_audit_head_get hf_audit_verify"

@test "every function of a client is tried with another tenant's things" {
    functions=$(cat "$HOLDFAST_SOURCE"/include/holdfast/*.h | tr '\n' ' ' | grep -oE 'HF_PUBLIC[^;]*;' |
        grep -E '\(.*hf_client \*' | sed -E 's/^[^(]*\b(hf_[a-z0-9_]+)\(.*/\1/' | sort -u)
    [ "$(wc -l <<<"$functions")" -gt 40 ]
    for name in $functions; do
        [[ " $(echo $store_wide) " == *" $name "* ]] && continue
        echo "$name"
        tr -d ' \n' <"$HOLDFAST_SOURCE/tests/contract/tenants.c" | grep -q "$name(fx.other"
    done
}

@test "each public header compiles alone, as C17 and as C++" {
    for header in "$HOLDFAST_SOURCE"/include/holdfast/*.h; do
        for language in "c -std=c17" "c++ -std=c++17"; do
            echo "#include <holdfast/$(basename "$header")>" |
                "${HOLDFAST_CC:-cc}" -I "$HOLDFAST_SOURCE/include" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x $language -
        done
    done
}

@test "a program outside the tree compiles and links against the installed libraries, shared and static" {
    DESTDIR="$BATS_TEST_TMPDIR" meson install -C "$HOLDFAST_BUILD" --no-rebuild --quiet
    pc=$(find "$BATS_TEST_TMPDIR" -name holdfast.pc)
    export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$BATS_TEST_TMPDIR"
    printf '#include <holdfast/holdfast.h>\nint main(void) { return hf_code_name(HF_OK)[0] != %s; }\n' "'o'" >"$BATS_TEST_TMPDIR/user.c"
    "${HOLDFAST_CC:-cc}" -o "$BATS_TEST_TMPDIR/user" "$BATS_TEST_TMPDIR/user.c" $(pkg-config --cflags --libs holdfast)
    LD_LIBRARY_PATH=$(dirname "$(find "$BATS_TEST_TMPDIR" -name libholdfast.so.0)") "$BATS_TEST_TMPDIR/user"
    nm --dynamic --undefined-only "$BATS_TEST_TMPDIR/user" | grep -q 'hf_code_name@HOLDFAST_0$'
    unset PKG_CONFIG_SYSROOT_DIR
    "${HOLDFAST_CC:-cc}" -o "$BATS_TEST_TMPDIR/static_user" "$BATS_TEST_TMPDIR/user.c" -I "$HOLDFAST_SOURCE/include" \
        "$(find "$BATS_TEST_TMPDIR" -name libholdfast.a)" $(pkg-config --libs sqlite3 libpq jansson) -pthread -ldl
    run ldd "$BATS_TEST_TMPDIR/static_user"
    [[ "$output" != *libholdfast* ]]
    "$BATS_TEST_TMPDIR/static_user"
}

@test "the stripped program is smaller than 2 MB" {
    strip -o "$BATS_TEST_TMPDIR/holdfast" "$HOLDFAST"
    size=$(stat -c %s "$BATS_TEST_TMPDIR/holdfast")
    echo "$size bytes"
    [ "$size" -lt 2000000 ]
}

@test "the program carries the library inside" {
    run ldd "$HOLDFAST"
    [[ "$output" != *libholdfast* ]]
}
