/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/courier.h"

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

struct parcel {
    struct hf__courier *courier;
    CURL *easy; /* NULL: free */
    struct curl_slist *headers;
    void *tag;
    size_t head_read;
    size_t body_read;
    bool cut;     /* the body went on and on */
    bool refused; /* by its address */
    char reason[CURL_ERROR_SIZE];
};

struct hf__courier {
    const struct hf__library *curl;
    CURLM *multi;
    bool public_only;
    int busy;
    struct parcel parcels[HF__COURIER_MOST];
};

static bool is_public_only(void)
{
    const char *text = getenv(PUBLIC_ONLY);
    return text && strcmp(text, "1") == 0;
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
        courier->public_only = is_public_only();
        courier->multi = curl->f_curl_multi_init();
    }
    if (!courier || !courier->multi) {
        free(courier);
        return hf__nomem(err);
    }
    *out = courier;
    return HF_OK;
}

static void put_away(struct parcel *parcel)
{
    const struct hf__library *curl = parcel->courier->curl;
    curl->f_curl_multi_remove_handle(parcel->courier->multi, parcel->easy);
    curl->f_curl_easy_cleanup(parcel->easy);
    curl->f_curl_slist_free_all(parcel->headers);
    parcel->easy = NULL;
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

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct parcel *parcel = arg;
    (void)purpose;
    if (!hf__address_allowed(&address->addr, parcel->courier->public_only)) {
        parcel->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- Sending ---- */

static bool add_headers(struct parcel *parcel, const struct hf__request *request)
{
    const struct hf__library *curl = parcel->courier->curl;
    for (const char **line = request->headers; *line; line++) {
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

static void set_options(struct parcel *parcel, const struct hf__request *request)
{
    __typeof__(curl_easy_setopt) *set = parcel->courier->curl->f_curl_easy_setopt;
    CURL *easy = parcel->easy;
    set(easy, CURLOPT_URL, request->url);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(easy, CURLOPT_POST, 1L);
    set(easy, CURLOPT_POSTFIELDS, request->body);
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
    set(easy, CURLOPT_HTTPHEADER, parcel->headers);
    set(easy, CURLOPT_USERAGENT, "holdfast/" HF__VERSION);
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_LIMIT);
    set(easy, CURLOPT_TIMEOUT_MS, ANSWER_LIMIT);
    set(easy, CURLOPT_QUICK_EXIT, 1L); /* else a lookup that hangs is waited for, past all limits */
    set(easy, CURLOPT_WRITEFUNCTION, take_body);
    set(easy, CURLOPT_WRITEDATA, parcel);
    set(easy, CURLOPT_HEADERFUNCTION, take_header);
    set(easy, CURLOPT_HEADERDATA, parcel);
    set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set(easy, CURLOPT_OPENSOCKETDATA, parcel);
    set(easy, CURLOPT_ERRORBUFFER, parcel->reason);
    set(easy, CURLOPT_PRIVATE, parcel);
    if (parcel->courier->public_only)
        set(easy, CURLOPT_PROXY, ""); /* a proxy would be asked for any address */
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
    const struct hf__library *curl = courier->curl;
    struct parcel *parcel = free_parcel(courier);
    if (!parcel)
        return hf__fail(err, HF_INTERNAL, "the courier carries all that it can");
    *parcel = (struct parcel){ .courier = courier, .easy = curl->f_curl_easy_init(), .tag = tag };
    if (!parcel->easy)
        return hf__nomem(err);
    courier->busy++;
    bool good = add_headers(parcel, request);
    if (good)
        set_options(parcel, request);
    if (good && curl->f_curl_multi_add_handle(courier->multi, parcel->easy) == CURLM_OK)
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
        read_receipt(parcel, message->data.result, &receipt);
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
