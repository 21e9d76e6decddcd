/* What one request costs in CPU: a server that answers every POST with an empty object, on one loop.
 * `make bench-http` runs it and the same on evhttp (bench_evhttp.c), one after the other, under wrk.
 *
 * User and system time by getrusage, per request, on 2 shared cores of a virtual machine (Debian 12,
 * libevent 2.1.12, keep-alive, six runs each):
 *
 *   lib/http    6.8 to  7.8 us   recv and sendmsg; one epoll_wait for about 16 requests; no epoll_ctl
 *   evhttp     11.9 to 13.4 us   NOLOCK and EPOLL_USE_CHANGELIST; no limits, no deadlines, not strict
 *
 * In perf nothing of lib/http shows above 1 %: what is left is the kernel's TCP. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "http/http.h"

static struct dd_loop *loop;
static unsigned long requests;

static void on_request(void *ctx, struct dd_http_request *req)
{
    (void)ctx;
    requests++;
    dd_http_reply(req, 200, "application/json", dd_slice_str("{}"));
}

static void *wait_for_signal(void *arg)
{
    int got;
    sigwait(arg, &got);
    dd_loop_stop(loop);
    return NULL;
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
    struct dd_stats *stats;
    struct dd_http_listeners *listeners;
    struct dd_http_server *server;
    struct dd_http_options options;
    sigset_t stop;
    pthread_t thread;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    dd_http_options_init(&options);
    if (dd_loop_create(&loop) || dd_stats_create(&stats) ||
        dd_http_listen(argc > 1 ? argv[1] : "127.0.0.1:0", &listeners) ||
        dd_http_server_create(loop, &options, stats, listeners, on_request, NULL, &server))
        return 1;
    printf("%s\n", dd_http_listeners_text(listeners));
    fflush(stdout);
    pthread_create(&thread, NULL, wait_for_signal, &stop);
    double before = cpu_us();
    dd_loop_run(loop);
    printf("%lu requests, %.2f us of CPU each\n", requests,
           (cpu_us() - before) / (double)(requests ? requests : 1));
    pthread_join(thread, NULL);
    dd_http_server_destroy(server);
    dd_http_listeners_destroy(listeners);
    dd_stats_destroy(stats);
    dd_loop_destroy(loop);
    return 0;
}
