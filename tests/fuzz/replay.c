/* Runs a fuzz target over files instead of under libFuzzer: every file of the named directories (and every
 * named file) is one input. Prints how many ran; a crash is the failure. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long ran;

static int replay_file(const char *path, off_t size)
{
    FILE *f = fopen(path, "rb");
    /* Exactly as long as the input, so that a sanitizer sees the first byte past it. */
    uint8_t *data = malloc(size ? (size_t)size : 1);
    int ok = f && data && fread(data, 1, (size_t)size, f) == (size_t)size;
    if (ok) {
        LLVMFuzzerTestOneInput(data, (size_t)size);
        ran++;
    } else {
        fprintf(stderr, "replay: cannot read %s\n", path);
    }
    free(data);
    if (f) fclose(f);
    return ok ? 0 : 1;
}

static int replay(const char *path);

static int replay_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) return 1;
    int failed = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        failed |= replay(name);
    }
    closedir(dir);
    return failed;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "replay: no %s\n", path);
        return 1;
    }
    return S_ISDIR(st.st_mode) ? replay_directory(path) : replay_file(path, st.st_size);
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    printf("replayed %lu inputs\n", ran);
    return failed || ran == 0;
}
