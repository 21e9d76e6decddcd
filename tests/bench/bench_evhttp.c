/* The same as bench_http.c on libevent's evhttp, for the record of the choice: see there. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static unsigned long requests;

static void on_request(struct evhttp_request *req, void *arg)
{
    (void)arg;
    requests++;
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "application/json");
    struct evbuffer *body = evbuffer_new();
    evbuffer_add(body, "{}", 2);
    evhttp_send_reply(req, 200, "OK", body);
    evbuffer_free(body);
}

static void on_signal(evutil_socket_t fd, short what, void *base)
{
    (void)fd, (void)what;
    event_base_loopbreak(base);
}

static double cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    struct event_base *base = event_base_new_with_config(config);
    struct evhttp *http = evhttp_new(base);
    evhttp_set_gencb(http, on_request, NULL);
    int port = argc > 1 ? atoi(argv[1]) : 8099;
    if (evhttp_bind_socket(http, "127.0.0.1", (ev_uint16_t)port) != 0) return 1;
    struct event *stop = evsignal_new(base, SIGINT, on_signal, base);
    event_add(stop, NULL);
    printf("127.0.0.1:%d\n", port);
    fflush(stdout);
    double before = cpu_us();
    event_base_dispatch(base);
    printf("%lu requests, %.2f us of CPU each\n", requests,
           (cpu_us() - before) / (double)(requests ? requests : 1));
    event_free(stop);
    evhttp_free(http);
    event_base_free(base);
    event_config_free(config);
    return 0;
}
