/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/courier.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outbox/address.h"
#include "outbox/library.h"
#include "util/alloc.h"
#include "util/error.h"

#define CONNECT_LIMIT 5000L   /* ms */
#define ANSWER_LIMIT 15000L   /* ms, for all of it */
#define READ_MOST (64 * 1024) /* bytes of headers, and of the body: nobody looks at more */
#define RETRY_AFTER_MOST HF_HOURS(1)
#define PUBLIC_ONLY "HOLDFAST_DISPATCH_PUBLIC_ONLY" /* environment; "1": no private addresses */
#define PROXY_RESOLVES "HOLDFAST_DISPATCH_PROXY_RESOLVES" /* "1": a proxy is told names */

/* What goes through a proxy connects nowhere itself, so where its receiver's name leads is looked up first, by a request that
 * opens no socket; then the proxy is told the address. */
struct parcel {
    struct hf__courier *courier;
    CURL *easy; /* NULL: free */
    const struct hf__request *request;
    struct curl_slist *headers;
    struct curl_slist *pin; /* the address for the proxy; NULL: none */
    void *tag;
    size_t head_read;
    size_t body_read;
    bool looking;                                  /* its address is being looked up */
    bool cut;                                      /* the body went on and on */
    bool refused;                                  /* by its address */
    char found[INET6_ADDRSTRLEN + sizeof "::[]:"]; /* the first address that is allowed */
    char reason[CURL_ERROR_SIZE];
};

struct hf__courier {
    const struct hf__library *curl;
    CURLM *multi;
    bool public_only;
    bool proxied; /* the environment names a proxy, for some receivers at least */
    bool proxy_resolves;
    int busy;
    struct parcel parcels[HF__COURIER_MOST];
};

static bool is_on(const char *variable)
{
    const char *text = getenv(variable);
    return text && strcmp(text, "1") == 0;
}

static bool names_a_proxy(void)
{
    static const char *const variables[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
                                             "all_proxy", "ALL_PROXY" };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = getenv(variables[i]);
        if (text && *text)
            return true;
    }
    return false;
}

hf_code hf__courier_new(struct hf__courier **out, hf_error *err)
{
    const struct hf__library *curl;
    hf_code code = hf__library_get(&curl, err);
    if (code != HF_OK)
        return code;
    struct hf__courier *courier = hf__calloc(1, sizeof *courier);
    if (courier) {
        courier->curl = curl;
        courier->public_only = is_on(PUBLIC_ONLY);
        courier->proxied = !courier->public_only && names_a_proxy();
        courier->proxy_resolves = is_on(PROXY_RESOLVES);
        courier->multi = curl->f_curl_multi_init();
    }
    if (!courier || !courier->multi) {
        free(courier);
        return hf__nomem(err);
    }
    *out = courier;
    return HF_OK;
}

static void end_request(struct parcel *parcel)
{
    const struct hf__library *curl = parcel->courier->curl;
    curl->f_curl_multi_remove_handle(parcel->courier->multi, parcel->easy);
    curl->f_curl_easy_cleanup(parcel->easy);
    curl->f_curl_slist_free_all(parcel->headers);
    curl->f_curl_slist_free_all(parcel->pin);
    parcel->easy = NULL;
    parcel->headers = parcel->pin = NULL;
}

static void put_away(struct parcel *parcel)
{
    end_request(parcel);
    parcel->courier->busy--;
}

void hf__courier_free(struct hf__courier *courier)
{
    if (!courier)
        return;
    for (int i = 0; i < HF__COURIER_MOST; i++)
        if (courier->parcels[i].easy)
            put_away(&courier->parcels[i]);
    courier->curl->f_curl_multi_cleanup(courier->multi);
    free(courier);
}

int hf__courier_busy(const struct hf__courier *courier)
{
    return courier->busy;
}

/* ---- What libcurl calls ---- */

static size_t take_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct parcel *parcel = arg;
    (void)bytes;
    parcel->body_read += size * count;
    parcel->cut = parcel->body_read > READ_MOST;
    return parcel->cut ? 0 : size * count;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct parcel *parcel = arg;
    (void)bytes;
    parcel->head_read += size * count;
    return parcel->head_read > READ_MOST ? 0 : size * count;
}

/* As libcurl wants it in place of any host, at the same port. */
static void remember(struct parcel *parcel, const struct sockaddr *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    bool six = address->sa_family == AF_INET6;
    const void *bytes =
        six ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
            : (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (!parcel->found[0] && inet_ntop(address->sa_family, bytes, text, sizeof text))
        snprintf(parcel->found, sizeof parcel->found, six ? "::[%s]:" : "::%s:", text);
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct parcel *parcel = arg;
    (void)purpose;
    if (!hf__address_allowed(&address->addr, parcel->courier->public_only)) {
        parcel->refused = true;
        return CURL_SOCKET_BAD;
    }
    if (parcel->looking) {
        remember(parcel, &address->addr);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- Sending ---- */

static bool add_headers(struct parcel *parcel)
{
    const struct hf__library *curl = parcel->courier->curl;
    for (const char **line = parcel->request->headers; *line; line++) {
        struct curl_slist *longer = curl->f_curl_slist_append(parcel->headers, *line);
        if (!longer)
            return false;
        parcel->headers = longer;
    }
    struct curl_slist *longer = curl->f_curl_slist_append(parcel->headers, "Expect:");
    if (longer)
        parcel->headers = longer;
    return longer != NULL;
}

/* What a lookup and a delivery have in common. */
static void set_way(struct parcel *parcel)
{
    __typeof__(curl_easy_setopt) *set = parcel->courier->curl->f_curl_easy_setopt;
    CURL *easy = parcel->easy;
    set(easy, CURLOPT_URL, parcel->request->url);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_LIMIT);
    set(easy, CURLOPT_TIMEOUT_MS, ANSWER_LIMIT);
    set(easy, CURLOPT_QUICK_EXIT, 1L); /* else a lookup that hangs is waited for, past all limits */
    set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set(easy, CURLOPT_OPENSOCKETDATA, parcel);
    set(easy, CURLOPT_ERRORBUFFER, parcel->reason);
    set(easy, CURLOPT_PRIVATE, parcel);
    if (parcel->courier->public_only || parcel->looking)
        set(easy, CURLOPT_PROXY, ""); /* a proxy would be asked for any address */
}

static void set_lookup(struct parcel *parcel)
{
    __typeof__(curl_easy_setopt) *set = parcel->courier->curl->f_curl_easy_setopt;
    set_way(parcel);
    set(parcel->easy, CURLOPT_CONNECT_ONLY, 1L);
    set(parcel->easy, CURLOPT_FRESH_CONNECT, 1L);
}

static void set_delivery(struct parcel *parcel)
{
    __typeof__(curl_easy_setopt) *set = parcel->courier->curl->f_curl_easy_setopt;
    const struct hf__request *request = parcel->request;
    CURL *easy = parcel->easy;
    set_way(parcel);
    set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(easy, CURLOPT_POST, 1L);
    set(easy, CURLOPT_POSTFIELDS, request->body);
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
    set(easy, CURLOPT_HTTPHEADER, parcel->headers);
    set(easy, CURLOPT_USERAGENT, "holdfast/" HF__VERSION);
    set(easy, CURLOPT_WRITEFUNCTION, take_body);
    set(easy, CURLOPT_WRITEDATA, parcel);
    set(easy, CURLOPT_HEADERFUNCTION, take_header);
    set(easy, CURLOPT_HEADERDATA, parcel);
    if (parcel->pin)
        set(easy, CURLOPT_CONNECT_TO, parcel->pin);
}

/* False: no memory. */
static bool begin_request(struct parcel *parcel)
{
    const struct hf__library *curl = parcel->courier->curl;
    parcel->easy = curl->f_curl_easy_init();
    bool good = parcel->easy && (parcel->looking || add_headers(parcel));
    if (good && parcel->found[0] && !parcel->courier->proxy_resolves)
        good = (parcel->pin = curl->f_curl_slist_append(NULL, parcel->found)) != NULL;
    if (good && parcel->looking)
        set_lookup(parcel);
    else if (good)
        set_delivery(parcel);
    return good && curl->f_curl_multi_add_handle(parcel->courier->multi, parcel->easy) == CURLM_OK;
}

static struct parcel *free_parcel(struct hf__courier *courier)
{
    for (int i = 0; i < HF__COURIER_MOST; i++)
        if (!courier->parcels[i].easy)
            return &courier->parcels[i];
    return NULL;
}

hf_code hf__courier_send(struct hf__courier *courier, const struct hf__request *request, void *tag,
                         hf_error *err)
{
    struct parcel *parcel = free_parcel(courier);
    if (!parcel)
        return hf__fail(err, HF_INTERNAL, "the courier carries all that it can");
    *parcel = (struct parcel){
        .courier = courier, .request = request, .looking = courier->proxied, .tag = tag
    };
    courier->busy++;
    if (begin_request(parcel))
        return HF_OK;
    put_away(parcel);
    return hf__nomem(err);
}

/* ---- What is back ---- */

static void explain(struct parcel *parcel, CURLcode result, struct hf__receipt *receipt)
{
    const struct hf__library *curl = parcel->courier->curl;
    if (parcel->refused)
        snprintf(receipt->error, sizeof receipt->error,
                 "its address is one that events are not sent to%s",
                 parcel->courier->public_only ? " (" PUBLIC_ONLY "=1)" : "");
    else if (parcel->looking)
        snprintf(receipt->error, sizeof receipt->error,
                 "%.150s; behind a proxy its name must be known to this machine, too (or "
                 "set " PROXY_RESOLVES "=1)",
                 parcel->reason[0] ? parcel->reason : curl->f_curl_easy_strerror(result));
    else if (parcel->head_read > READ_MOST)
        snprintf(receipt->error, sizeof receipt->error, "it answered with too many headers");
    else if (result != CURLE_OK && !parcel->cut)
        snprintf(receipt->error, sizeof receipt->error, "%s",
                 parcel->reason[0] ? parcel->reason : curl->f_curl_easy_strerror(result));
    else if (receipt->status >= 300 && receipt->status < 400)
        snprintf(receipt->error, sizeof receipt->error,
                 "it answered %d: redirects are not followed", receipt->status);
    else
        snprintf(receipt->error, sizeof receipt->error, "it answered %d", receipt->status);
}

static void read_receipt(struct parcel *parcel, CURLcode result, struct hf__receipt *receipt)
{
    __typeof__(curl_easy_getinfo) *get = parcel->courier->curl->f_curl_easy_getinfo;
    long status = 0;
    curl_off_t seconds = 0;
    *receipt = (struct hf__receipt){ 0 };
    get(parcel->easy, CURLINFO_RESPONSE_CODE, &status);
    get(parcel->easy, CURLINFO_RETRY_AFTER, &seconds);
    receipt->status = (int)status;
    receipt->retry_after = seconds >= RETRY_AFTER_MOST / HF_SECONDS(1)
                               ? RETRY_AFTER_MOST
                               : (int64_t)seconds * HF_SECONDS(1);
    receipt->taken =
        (result == CURLE_OK || parcel->cut) && receipt->status >= 200 && receipt->status < 300;
    if (!receipt->taken)
        explain(parcel, result, receipt);
}

/* After its lookup; false: it is back. */
static bool goes_on(struct parcel *parcel)
{
    bool found = parcel->found[0] != '\0';
    if (!parcel->looking || (!found && (parcel->refused || !parcel->courier->proxy_resolves)))
        return false;
    end_request(parcel);
    parcel->looking = parcel->refused = false;
    parcel->reason[0] = '\0';
    return begin_request(parcel);
}

static void hand_back(struct hf__courier *courier, hf__courier_back back, void *arg)
{
    CURLMsg *message;
    int left;
    while ((message = courier->curl->f_curl_multi_info_read(courier->multi, &left))) {
        struct parcel *parcel = NULL;
        struct hf__receipt receipt;
        if (message->msg != CURLMSG_DONE)
            continue;
        courier->curl->f_curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &parcel);
        CURLcode result = message->data.result; /* not there any more after the next line */
        if (goes_on(parcel))
            continue;
        read_receipt(parcel, result, &receipt);
        void *tag = parcel->tag;
        put_away(parcel);
        back(tag, &receipt, arg);
    }
}

hf_code hf__courier_wait(struct hf__courier *courier, int milliseconds, hf__courier_back back,
                         void *arg, hf_error *err)
{
    const struct hf__library *curl = courier->curl;
    int running = 0;
    CURLMcode code = curl->f_curl_multi_perform(courier->multi, &running);
    if (code == CURLM_OK && running == courier->busy && running > 0)
        code = curl->f_curl_multi_poll(courier->multi, NULL, 0, milliseconds, NULL);
    if (code == CURLM_OK)
        code = curl->f_curl_multi_perform(courier->multi, &running);
    hand_back(courier, back, arg);
    return code == CURLM_OK ? HF_OK : hf__fail(err, HF_INTERNAL, "libcurl failed: %d", (int)code);
}
