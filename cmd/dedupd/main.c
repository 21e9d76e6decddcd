/* Arguments, signals, and the only exit. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "base/log.h"
#include "base/wait.h"
#include "config/args.h"
#include "service.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_FORCED = 130 };

static void print(FILE *to, const struct dd_buf *text)
{
    if (text->len && fwrite(text->data, 1, text->len, to) != text->len)
        fprintf(stderr, "dedupd: cannot write\n");
}

static enum dd_err load(const struct dd_args *args, struct dd_config **out)
{
    struct dd_buf errors = {0};
    struct dd_config_sources from = dd_args_sources(args, environ);
    enum dd_err err = dd_config_load(&from, out, &errors);
    print(stderr, &errors);
    if (err != DD_OK) fprintf(stderr, "dedupd: the configuration is not usable (%s)\n", dd_err_text(err));
    dd_buf_free(&errors);
    return err;
}

/* The signals that the main thread waits for; blocked in every thread. */
static sigset_t block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, DD_APP_SIGNAL_DONE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return set;
}

static void reload(struct dd_app *app, struct dd_config *running, const struct dd_args *args)
{
    struct dd_config *now;
    struct dd_buf applied = {0}, restart = {0};
    if (load(args, &now) != DD_OK) {
        dd_error("config.reload_failed", "running=unchanged");
        return;
    }
    if (dd_config_reload_diff(running, now, &applied, &restart) == DD_OK) {
        dd_info("config.reloaded", "applied=\"%.*s\" needs_restart=\"%.*s\"", (int)applied.len,
                applied.len ? (char *)applied.data : "", (int)restart.len,
                restart.len ? (char *)restart.data : "");
        dd_app_reload(app);
    }
    dd_buf_free(&applied);
    dd_buf_free(&restart);
    dd_config_destroy(now);
}

/* Waits for a signal of the set; 0 when none came until then. */
static int wait_signal(const sigset_t *set, const struct timespec *until)
{
    struct timespec now;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        struct timespec left = {until->tv_sec - now.tv_sec, until->tv_nsec - now.tv_nsec};
        if (left.tv_nsec < 0) left.tv_sec--, left.tv_nsec += 1000000000;
        if (left.tv_sec < 0) return 0;
        int sig = sigtimedwait(set, NULL, &left);
        if (sig > 0) return sig;
        if (errno != EINTR) return 0;
    }
}

static bool is_stop(int sig)
{
    return sig == SIGTERM || sig == SIGINT;
}

static void exit_at_once(int sig)
{
    (void)sig;
    _exit(EXIT_FORCED);
}

/* What is left after the drain (a flush to the files, a page of the wheel) may wait for a Redis that hardly
 * answers, but not for ever. */
#define DESTROY_S 60

static void exit_late(int sig)
{
    (void)sig;
    _exit(EXIT_FAILED); /* as a crash: what was acknowledged is safe */
}

/* From here on nobody waits for signals. */
static void let_signals_end_it(void)
{
    struct sigaction end = {.sa_handler = exit_at_once}, late = {.sa_handler = exit_late};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGALRM, &late, NULL);
    alarm(DESTROY_S);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* After the first SIGTERM or SIGINT; returns the exit status. A second one exits at once; SIGHUP comes too
 * late and changes nothing. */
static int stop(struct dd_app *app, const struct dd_config *config, const sigset_t *set)
{
    dd_service_stopping();
    dd_info("app.draining", "delay_s=%lld", (long long)config->http.drain_delay_s);
    dd_app_drain(app);
    struct timespec until = dd_until_ms(config->http.drain_delay_s * 1000);
    int sig;
    while ((sig = wait_signal(set, &until)) != 0)
        if (is_stop(sig)) _exit(EXIT_FORCED);
    dd_app_finish(app);
    until = dd_until_ms(config->http.drain_timeout_s * 1000);
    do {
        sig = wait_signal(set, &until);
        if (is_stop(sig)) _exit(EXIT_FORCED);
    } while (sig && sig != DD_APP_SIGNAL_DONE);
    if (!sig) {
        dd_error("app.drain_timeout", "after_s=%lld", (long long)config->http.drain_timeout_s);
        _exit(EXIT_FAILED); /* as a crash: what was acknowledged is safe, saved tables are not made */
    }
    let_signals_end_it();
    dd_app_destroy(app, true);
    dd_info("app.stopped", "");
    return EXIT_OK;
}

static int serve(const struct dd_args *args)
{
    struct dd_config *config;
    if (load(args, &config) != DD_OK) return EXIT_USAGE;
    dd_log_set_level(config->log.level);
    sigset_t set = block_signals();
    struct dd_app *app;
    if (dd_app_start(config, &app) != DD_OK) {
        dd_config_destroy(config);
        return EXIT_FAILED;
    }
    dd_service_ready("serving");
    int sig;
    while ((sig = sigwaitinfo(&set, NULL)) != SIGTERM && sig != SIGINT) {
        if (sig != SIGHUP) continue;
        dd_service_reloading();
        reload(app, config, args);
        dd_service_ready("serving");
    }
    int status = stop(app, config, &set);
    dd_config_destroy(config);
    return status;
}

static int print_config(const struct dd_args *args)
{
    struct dd_config *config;
    struct dd_buf text = {0};
    if (load(args, &config) != DD_OK) return EXIT_USAGE;
    enum dd_err err = dd_config_print(config, &text);
    print(stdout, &text);
    dd_buf_free(&text);
    dd_config_destroy(config);
    return err == DD_OK ? EXIT_OK : EXIT_FAILED;
}

static int check_config(const struct dd_args *args)
{
    struct dd_config *config;
    if (load(args, &config) != DD_OK) return EXIT_USAGE;
    enum dd_err err = dd_app_check(config);
    dd_config_destroy(config);
    if (err != DD_OK) return EXIT_USAGE;
    printf("the configuration is valid\n");
    return EXIT_OK;
}

static int print_text(enum dd_args_action action)
{
    struct dd_buf text = {0};
    if (action == DD_ARGS_HELP) dd_args_help(&text);
    if (action == DD_ARGS_VERSION) dd_buf_add_str(&text, "dedupd " DD_VERSION "\n");
    if (action == DD_ARGS_PRINT_REFERENCE && dd_config_reference(&text) != DD_OK) return EXIT_FAILED;
    print(stdout, &text);
    dd_buf_free(&text);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct dd_args args;
    struct dd_buf errors = {0};
    if (dd_args_parse(argc, argv, &args, &errors) != DD_OK) {
        print(stderr, &errors);
        dd_buf_free(&errors);
        dd_args_reset(&args);
        return EXIT_USAGE;
    }
    int status;
    if (args.action == DD_ARGS_RUN)
        status = serve(&args);
    else if (args.action == DD_ARGS_PRINT_CONFIG)
        status = print_config(&args);
    else if (args.action == DD_ARGS_CHECK_CONFIG)
        status = check_config(&args);
    else
        status = print_text(args.action);
    dd_args_reset(&args);
    return status;
}
