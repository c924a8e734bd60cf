/* A disk that fails below Python: from call `at` of a kind on, on files whose path holds `where`, EIO. LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char where[4096], kind;
static int at = -1, once;
int failing_seen;

void failing_set(const char *path, char which, int number, int only) {
    strncpy(where, path, sizeof where - 1);
    kind = which, at = number, once = only, failing_seen = 0;
}

static int fails(int fd, char which) {
    char link[64], path[4096];
    if (which != kind || at < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (!strstr(path, where)) return 0;
    int now = __sync_fetch_and_add(&failing_seen, 1);
    if (once ? now != at : now < at) return 0;
    errno = EIO;
    return 1;
}

#define WRAP(result, name, which, given, ...)                                   \
    result name given {                                                         \
        static result (*real) given;                                            \
        if (!real) real = (result(*) given)dlsym(RTLD_NEXT, #name);             \
        return fails(fd, which) ? -1 : real(__VA_ARGS__);                       \
    }
WRAP(ssize_t, read, 'r', (int fd, void *data, size_t size), fd, data, size)
WRAP(ssize_t, pread, 'r', (int fd, void *data, size_t size, off_t place), fd, data, size, place)
WRAP(ssize_t, pread64, 'r', (int fd, void *data, size_t size, off_t place), fd, data, size, place)
WRAP(ssize_t, write, 'w', (int fd, const void *data, size_t size), fd, data, size)
WRAP(ssize_t, pwrite, 'w', (int fd, const void *data, size_t size, off_t place), fd, data, size, place)
WRAP(ssize_t, pwrite64, 'w', (int fd, const void *data, size_t size, off_t place), fd, data, size, place)
WRAP(int, fsync, 's', (int fd), fd)
WRAP(int, fdatasync, 's', (int fd), fd)
