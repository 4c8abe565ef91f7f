/* A library that is loaded into commentd before all others (LD_PRELOAD). It notes, in order, what the
   program does to the files in one folder and what it sends over sockets. power_cut.py reads that.

   POWER_CUT_FOLDER is the folder, by its real path, and POWER_CUT_LOG the file with the notes.

   A note is made when a call has returned, by the thread that made the call: what had to happen
   before something else is before it in the log, in whichever thread or process. Where it matters
   when a call began, a note is made then, too. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 65536 };

static int log_file = -1;
static char folder[PATH_MAX];
static char is_ours[MOST_DESCRIPTORS]; /* whether a descriptor is of a file in the folder */
static int64_t calls;                  /* numbers the calls that have two notes */

__attribute__((constructor)) static void begin(void)
{
    const char *named = getenv("POWER_CUT_FOLDER");
    const char *log_name = getenv("POWER_CUT_LOG");

    if (!named || !log_name)
        return;
    snprintf(folder, sizeof folder, "%s", named);
    log_file = syscall(SYS_openat, AT_FDCWD, log_name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* One write: the notes of several threads and processes do not mix. */
static void note(char kind, int descriptor, int64_t number, const void *first, size_t first_size,
                 const void *second, size_t second_size)
{
    int error = errno;
    int64_t head[6] = {kind, getpid(), descriptor, number, first_size, second_size};
    struct iovec parts[3] = {
        {head, sizeof head},
        {(void *)first, first_size},
        {(void *)second, second_size},
    };

    if (log_file >= 0 && syscall(SYS_writev, log_file, parts, 3) < 0)
        abort();
    errno = error;
}

static int64_t next_call(void)
{
    return __sync_add_and_fetch(&calls, 1);
}

static int ours(int descriptor)
{
    return descriptor >= 0 && descriptor < MOST_DESCRIPTORS && is_ours[descriptor];
}

static int in_folder(const char *path)
{
    size_t length = strlen(folder);

    return length && !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

/* Names */

static void note_opened(int descriptor, int flags)
{
    char link[64], path[PATH_MAX];
    ssize_t length;
    int error = errno;

    if (descriptor < 0 || descriptor >= MOST_DESCRIPTORS)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    errno = error;
    if (length < 0)
        return;
    path[length] = 0;
    is_ours[descriptor] = in_folder(path);
    if (is_ours[descriptor])
        note('o', descriptor, (flags & O_TRUNC) != 0, path, length, 0, 0);
}

static int open_at(int place, const char *path, int flags, int mode)
{
    int descriptor = syscall(SYS_openat, place, path, flags, mode);

    note_opened(descriptor, flags);
    return descriptor;
}

static int mode_of(int flags, va_list more)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, int) : 0;
}

#define OPEN(name)                                        \
    int name(const char *path, int flags, ...)            \
    {                                                     \
        va_list more;                                     \
        int mode;                                         \
                                                          \
        va_start(more, flags);                            \
        mode = mode_of(flags, more);                      \
        va_end(more);                                     \
        return open_at(AT_FDCWD, path, flags, mode);      \
    }

#define OPEN_AT(name)                                     \
    int name(int place, const char *path, int flags, ...) \
    {                                                     \
        va_list more;                                     \
        int mode;                                         \
                                                          \
        va_start(more, flags);                            \
        mode = mode_of(flags, more);                      \
        va_end(more);                                     \
        return open_at(place, path, flags, mode);         \
    }

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

int close(int descriptor)
{
    if (ours(descriptor))
        is_ours[descriptor] = 0;
    return syscall(SYS_close, descriptor);
}

/* The program names files by whole paths, or beside its working folder. */
static void whole(const char *path, char *result)
{
    char here[PATH_MAX] = "";

    if (path[0] != '/' && getcwd(here, sizeof here))
        strncat(here, "/", sizeof here - strlen(here) - 1);
    snprintf(result, PATH_MAX, "%s%s", here, path);
}

static int named(char kind, int result, const char *old, const char *new)
{
    char old_path[PATH_MAX], new_path[PATH_MAX] = "";
    int error = errno;

    whole(old, old_path);
    if (new)
        whole(new, new_path);
    if (!result && (in_folder(old_path) || in_folder(new_path)))
        note(kind, -1, 0, old_path, strlen(old_path), new_path, strlen(new_path));
    errno = error;
    return result;
}

int rename(const char *old, const char *new)
{
    return named('n', syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0), old, new);
}

int link(const char *old, const char *new)
{
    return named('l', syscall(SYS_linkat, AT_FDCWD, old, AT_FDCWD, new, 0), old, new);
}

int unlink(const char *path)
{
    return named('u', syscall(SYS_unlinkat, AT_FDCWD, path, 0), path, 0);
}

int rmdir(const char *path)
{
    return named('u', syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR), path, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return named('m', syscall(SYS_mkdirat, AT_FDCWD, path, mode), path, 0);
}

/* Content */

static ssize_t written(int descriptor, const void *data, ssize_t size, off_t offset)
{
    if (size > 0)
        note('w', descriptor, offset, data, size, 0, 0);
    return size;
}

ssize_t write(int descriptor, const void *data, size_t size)
{
    ssize_t done = syscall(SYS_write, descriptor, data, size);

    if (!ours(descriptor) || done < 0)
        return done;
    return written(descriptor, data, done, syscall(SYS_lseek, descriptor, 0, SEEK_CUR) - done);
}

static ssize_t write_at(int descriptor, const void *data, size_t size, off_t offset)
{
    ssize_t done = syscall(SYS_pwrite64, descriptor, data, size, offset);

    return ours(descriptor) ? written(descriptor, data, done, offset) : done;
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset)
{
    return write_at(descriptor, data, size, offset);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off_t offset)
{
    return write_at(descriptor, data, size, offset);
}

static int cut(int descriptor, off_t size)
{
    int result = syscall(SYS_ftruncate, descriptor, size);

    if (ours(descriptor) && !result)
        note('t', descriptor, size, 0, 0, 0, 0);
    return result;
}

int ftruncate(int descriptor, off_t size)
{
    return cut(descriptor, size);
}

int ftruncate64(int descriptor, off_t size)
{
    return cut(descriptor, size);
}

/* Python copies files with it where it can, and by read and write where not. */
ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    (void)to, (void)from, (void)offset, (void)size;
    errno = EINVAL;
    return -1;
}

ssize_t sendfile64(int to, int from, off_t *offset, size_t size)
{
    return sendfile(to, from, offset, size);
}

/* What was written before a sync began is on the disk when it has ended. */
static int synced(long how, int descriptor)
{
    int64_t call = next_call();
    int result;

    if (ours(descriptor))
        note('b', descriptor, call, 0, 0, 0, 0);
    result = syscall(how, descriptor);
    if (ours(descriptor) && !result)
        note('e', descriptor, call, 0, 0, 0, 0);
    return result;
}

int fsync(int descriptor)
{
    return synced(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    return synced(SYS_fdatasync, descriptor);
}

/* Responses: a client may have one as soon as the call has begun. */
ssize_t sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *address,
               socklen_t address_size)
{
    int64_t call = next_call();
    ssize_t done;

    note('s', socket, call, 0, 0, 0, 0);
    done = syscall(SYS_sendto, socket, data, size, flags, address, address_size);
    if (done > 0)
        note('S', socket, call, data, done, 0, 0);
    return done;
}

ssize_t send(int socket, const void *data, size_t size, int flags)
{
    return sendto(socket, data, size, flags, 0, 0);
}
