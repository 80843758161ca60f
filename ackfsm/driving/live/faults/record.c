/* Notes in a log what a program does to the files below a folder.  Preloaded (LD_PRELOAD) by power.py, which reads it.

   ACKFSM_POWER_FOLDER is the folder, without symbolic links; ACKFSM_POWER_LOG the log, to which all processes append.
   Nothing is kept of a descriptor: the kernel is asked for its path each time, so that dup, fork, exec and rename need
   no care.  A change and its record are made under one lock, so that the log has the order of the changes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct record { /* then path, to and data; all in one write */
    uint32_t kind, flags, path, to;
    uint64_t begin, end, inode, offset, size, data;
};
enum { OPEN = 'o', WRITE = 'w', TRUNCATE = 't', SYNC = 's', RENAME = 'r', LINK = 'l', UNLINK = 'u',
       MKDIR = 'm', UNSEEN = '?' };
enum { TRUNCATES = 1, DATA_ONLY = 2, SYNCED = 4 }; /* of an open; of a sync; of a write */

static char folder[PATH_MAX];
static size_t folder_size;
static int log_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take(void) { pthread_mutex_lock(&lock); }
static void give(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("ACKFSM_POWER_FOLDER"), *log = getenv("ACKFSM_POWER_LOG");
    if (log_file >= 0 || !name || !log) return;
    snprintf(folder, sizeof folder, "%s", name);
    int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (file < 0) return;
    log_file = syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, 700); /* out of the way of programs that count on low numbers */
    if (log_file < 0) log_file = file; else syscall(SYS_close, file);
    folder_size = strlen(folder);
    pthread_atfork(take, give, give);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static int below(const char *path) {
    return folder_size && !strncmp(path, folder, folder_size) && (path[folder_size] == '/' || !path[folder_size]);
}

/* Whether a descriptor is of a file or folder below ours; its path and inode are told. */
static int ours(int fd, char *path, struct stat *about) {
    char link[32];
    if (!folder_size) begin();
    int kept = errno, size = -1;
    if (fd >= 0 && !fstat(fd, about) && (S_ISREG(about->st_mode) || S_ISDIR(about->st_mode))) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        size = readlink(link, path, PATH_MAX - 1);
    }
    errno = kept;
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}

/* The same for a path, of which the last name need not exist. */
static int located(int at, const char *name, char *path) {
    char parent[PATH_MAX], full[PATH_MAX];
    if (!folder_size) begin();
    if (!folder_size || !name) return 0;
    int kept = errno;
    if (at == AT_FDCWD || *name == '/') snprintf(parent, sizeof parent, "%s", name);
    else snprintf(parent, sizeof parent, "/proc/self/fd/%d/%s", at, name);
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--) parent[n - 1] = 0;
    char *slash = strrchr(parent, '/'), last[NAME_MAX + 1];
    snprintf(last, sizeof last, "%.255s", slash ? slash + 1 : parent);
    if (slash) slash[slash == parent] = 0;
    const char *found = realpath(slash ? parent : ".", full);
    errno = kept;
    if (!found) return 0;
    return snprintf(path, PATH_MAX, "%s/%s", full, last) < PATH_MAX && below(path);
}

static void note(struct record r, const char *path, const char *to, const void *data) {
    r.path = path ? strlen(path) : 0;
    r.to = to ? strlen(to) : 0;
    struct iovec parts[] = {{&r, sizeof r}, {(void *)path, r.path}, {(void *)to, r.to}, {(void *)data, r.data}};
    int kept = errno;
    long size = sizeof r + r.path + r.to + r.data, done = syscall(SYS_writev, log_file, parts, 4);
    if (done < 0 && errno == EBADF) { /* a program that closes all descriptors that it does not know */
        log_file = -1;
        begin();
        done = syscall(SYS_writev, log_file, parts, 4);
    }
    if (done != size) abort(); /* a record that lacks something is worth nothing */
    errno = kept;
}

static void unseen(const char *what, const char *path) {
    note((struct record){.kind = UNSEEN, .end = now()}, path, what, NULL);
}

#define REAL(result, name, ...)                                      \
    static result (*real)(__VA_ARGS__);                              \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* What is written: where it is, if not at the position of the descriptor, is known before. */
static void note_write(int fd, const char *path, const struct stat *about, int64_t at, const struct iovec *v, int n,
                       uint64_t size, int synced) {
    char *data = malloc(size ? size : 1);
    if (!data) abort();
    uint64_t filled = 0;
    for (int i = 0; i < n && filled < size; i++) {
        uint64_t part = v[i].iov_len < size - filled ? v[i].iov_len : size - filled;
        memcpy(data + filled, v[i].iov_base, part);
        filled += part;
    }
    int flags = fcntl(fd, F_GETFL);
    if (at < 0 || flags & O_APPEND) at = lseek(fd, 0, SEEK_CUR) - (int64_t)size;
    if (flags & O_APPEND) { struct stat s; at = fstat(fd, &s) ? at : s.st_size - (int64_t)size; }
    note((struct record){.kind = WRITE, .flags = synced || flags & O_DSYNC ? SYNCED : 0, .end = now(),
         .inode = about->st_ino, .offset = at, .size = size, .data = size}, path, NULL, data);
    free(data);
}

/* A call on a file of ours, and its record if it did something, under the lock. */
#define NOTED(result, call, done_well, noting)    \
    char path[PATH_MAX];                          \
    struct stat about;                            \
    if (!ours(fd, path, &about)) return call;     \
    take();                                       \
    result done = call;                           \
    int kept = errno;                             \
    if (done_well) noting;                        \
    errno = kept;                                 \
    give();                                       \
    return done
#define WRITING(call, at, v, n, synced) \
    NOTED(ssize_t, call, done > 0, note_write(fd, path, &about, at, v, n, done, synced))

ssize_t write(int fd, const void *data, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    struct iovec v = {(void *)data, n};
    WRITING(real(fd, data, n), -1, &v, 1, 0);
}
ssize_t writev(int fd, const struct iovec *v, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    WRITING(real(fd, v, n), -1, v, n, 0);
}
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    struct iovec v = {(void *)data, n};
    WRITING(real(fd, data, n, at), at, &v, 1, 0);
}
ssize_t pwritev64v2(int fd, const struct iovec *v, int n, off64_t at, int flags) {
    REAL(ssize_t, "pwritev64v2", int, const struct iovec *, int, off64_t, int);
    WRITING(real(fd, v, n, at, flags), at, v, n, flags & (RWF_DSYNC | RWF_SYNC));
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }
ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at) { return pwritev64v2(fd, v, n, at, 0); }
ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at) { return pwritev64v2(fd, v, n, at, 0); }
ssize_t pwritev2(int fd, const struct iovec *v, int n, off_t at, int flags) { return pwritev64v2(fd, v, n, at, flags); }

#define SIZING(call, length)                                                                                   \
    NOTED(int, call, !done, note((struct record){.kind = TRUNCATE, .end = now(), .inode = about.st_ino,        \
                                                 .size = length}, path, NULL, NULL))

int ftruncate64(int fd, off64_t size) {
    REAL(int, "ftruncate64", int, off64_t);
    SIZING(real(fd, size), size);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    REAL(int, "posix_fallocate64", int, off64_t, off64_t);
    SIZING(real(fd, at, size), about.st_size < at + size ? at + size : about.st_size);
}
int fallocate64(int fd, int mode, off64_t at, off64_t size) {
    REAL(int, "fallocate64", int, int, off64_t, off64_t);
    if (!mode) return (errno = posix_fallocate64(fd, at, size)) ? -1 : 0;
    if (mode == FALLOC_FL_KEEP_SIZE) return real(fd, mode, at, size);
    NOTED(int, real(fd, mode, at, size), !done, unseen("fallocate that changes what is in the file", path));
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int posix_fallocate(int fd, off_t at, off_t size) { return posix_fallocate64(fd, at, size); }
int fallocate(int fd, int mode, off_t at, off_t size) { return fallocate64(fd, mode, at, size); }

/* A sync covers what had been done when it began. */
static int synced(int fd, int (*real)(int), int flags) {
    char path[PATH_MAX];
    struct stat about;
    if (!ours(fd, path, &about)) return real(fd);
    struct record r = {.kind = SYNC, .flags = flags, .begin = now(), .inode = about.st_ino};
    int done = real(fd);
    r.end = now();
    take();
    if (!done) note(r, path, NULL, NULL);
    give();
    return done;
}
int fsync(int fd) {
    REAL(int, "fsync", int);
    return synced(fd, real, 0);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return synced(fd, real, DATA_ONLY);
}

/* Names */
static int opened(int at, const char *name, int flags, mode_t mode) {
    REAL(int, "openat64", int, const char *, int, mode_t);
    char path[PATH_MAX];
    struct stat about;
    if (!(flags & (O_CREAT | O_TRUNC)) || !located(at, name, path)) return real(at, name, flags, mode);
    take();
    int fd = real(at, name, flags, mode);
    if (fd >= 0 && ours(fd, path, &about))
        note((struct record){.kind = OPEN, .flags = flags & O_TRUNC ? TRUNCATES : 0, .end = now(),
                             .inode = about.st_ino, .size = about.st_mode & 07777}, path, NULL, NULL);
    give();
    return fd;
}
#define OPENS(name, at, ...)                                   \
    int name(__VA_ARGS__, int flags, ...) {                    \
        va_list more;                                          \
        va_start(more, flags);                                 \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                          \
        return opened(at, path, flags, mode);                  \
    }
OPENS(open, AT_FDCWD, const char *path)
OPENS(open64, AT_FDCWD, const char *path)
OPENS(openat, at, int at, const char *path)
OPENS(openat64, at, int at, const char *path)
int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }
int truncate64(const char *path, off64_t size) {
    int fd = opened(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0), done = fd < 0 ? -1 : ftruncate64(fd, size), kept = errno;
    if (fd >= 0) close(fd);
    errno = kept;
    return done;
}
int truncate(const char *path, off_t size) { return truncate64(path, size); }

#define NAMING(call, record_kind, first, second)                                                 \
    char from[PATH_MAX] = "", into[PATH_MAX] = "";                                               \
    if (!((first) | (second))) return call;                                                      \
    take();                                                                                      \
    int done = call;                                                                             \
    if (!done) note((struct record){.kind = record_kind, .end = now()}, from, into, NULL);       \
    give();                                                                                      \
    return done

int renameat2(int a, const char *old, int b, const char *new, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    NAMING(real(a, old, b, new, flags), RENAME, located(a, old, from), located(b, new, into));
}
int renameat(int a, const char *old, int b, const char *new) { return renameat2(a, old, b, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int a, const char *old, int b, const char *new, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    NAMING(real(a, old, b, new, flags), LINK, located(a, old, from), located(b, new, into));
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
int unlinkat(int at, const char *name, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    NAMING(real(at, name, flags), UNLINK, located(at, name, from), 0);
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdirat(int at, const char *name, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    NAMING(real(at, name, mode), MKDIR, located(at, name, from), 0);
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

/* Ways past all of this, which are told. */
void *mmap64(void *where, size_t size, int protection, int flags, int fd, off64_t at) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    char path[PATH_MAX];
    struct stat about;
    if (fd >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE && protection & PROT_WRITE && ours(fd, path, &about))
        unseen("writes through a memory map", path);
    return real(where, size, protection, flags, fd, at);
}
void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t at) {
    return mmap64(where, size, protection, flags, fd, at);
}
ssize_t sendfile64(int fd, int in, off64_t *from, size_t n) {
    REAL(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    NOTED(ssize_t, real(fd, in, from, n), done > 0, unseen("a copy by the kernel", path));
}
ssize_t sendfile(int fd, int in, off_t *from, size_t n) { return sendfile64(fd, in, from, n); }
ssize_t copy_file_range(int in, off64_t *from, int fd, off64_t *to, size_t n, unsigned flags) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    NOTED(ssize_t, real(in, from, fd, to, n, flags), done > 0, unseen("a copy by the kernel", path));
}
FILE *fopen64(const char *name, const char *mode) {
    REAL(FILE *, "fopen64", const char *, const char *);
    char path[PATH_MAX];
    if (strpbrk(mode, "wa+") && located(AT_FDCWD, name, path)) unseen("writes through a stream of C", path);
    return real(name, mode);
}
FILE *fopen(const char *name, const char *mode) { return fopen64(name, mode); }
int io_submit(void *context, long n, void **requests) {
    REAL(int, "io_submit", void *, long, void **);
    if (log_file >= 0) unseen("asynchronous input and output", folder);
    return real(context, n, requests);
}
