/* Runs a program, counts every call for I/O that it makes of the kernel, and makes one of them fail.
 *
 *     io_tracer REPORT STORE SCRATCH KIND CALL USE -- PROGRAM ...
 *
 * Law: nothing gets past it. Every call of the kernel by every thread of the program is seen (ptrace); one that
 * is neither in the table of calls for I/O nor in that of others is reported as unknown, and the campaign
 * refuses to go on. What the program starts is not traced. It counts from the first opening of a file whose
 * name contains yarnctl_task, and stops where the program becomes another (exec).
 *
 * A call is named "NAME TARGET [beside]": TARGET by its file (0, 1, 2, a pipe's end, a socket, what of
 * the store, what of the scratch folder, system for the rest), beside for another thread than the first.
 * KIND: none; EIO, EINTR: fails once, before it is done; ENOSPC: fails from this use on; short: half of the
 * bytes, once; full: half of the bytes, then ENOSPC; lost: it is done, and EIO is said. close is always done.
 * REPORT: a line "USES<tab>CALL" for each call, "unknown<tab>NUMBER", and "fired<tab>TIMES".
 * Linux on x86-64.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef __x86_64__
#error "io_tracer knows the calls of Linux on x86-64 only"
#endif

enum { NOT_KNOWN, HANDLE, PATH, PATH_AT, MAKES, NO_IO };
enum { TEXT = 512, HANDLES = 4096, CALLS = 4096, THREADS = 4096 };

struct call { int number, takes, second; const char *name; };
/* takes: what names the target: the handle or the path in argument 0, the path in argument 1; MAKES: none.
 * second: the argument with a count of bytes that can be halved, 0 if there is none. */
static const struct call table[] = {
    {SYS_read, HANDLE, 2, "read"}, {SYS_write, HANDLE, 2, "write"}, {SYS_pread64, HANDLE, 2, "pread"},
    {SYS_pwrite64, HANDLE, 2, "pwrite"}, {SYS_close, HANDLE, 0, "close"}, {SYS_fsync, HANDLE, 0, "fsync"},
    {SYS_fstat, HANDLE, 0, "fstat"}, {SYS_lseek, HANDLE, 0, "lseek"}, {SYS_ioctl, HANDLE, 0, "ioctl"},
    {SYS_fcntl, HANDLE, 0, "fcntl"}, {SYS_getdents64, HANDLE, 0, "getdents"}, {SYS_dup, HANDLE, 0, "dup"},
    {SYS_dup2, HANDLE, 0, "dup2"}, {SYS_dup3, HANDLE, 0, "dup3"}, {SYS_ftruncate, HANDLE, 0, "ftruncate"},
    {SYS_open, PATH, 0, "open"}, {SYS_openat, PATH_AT, 0, "open"}, {SYS_stat, PATH, 0, "stat"},
    {SYS_lstat, PATH, 0, "stat"}, {SYS_newfstatat, PATH_AT, 0, "stat"}, {SYS_statx, PATH_AT, 0, "stat"},
    {SYS_access, PATH, 0, "access"}, {SYS_faccessat, PATH_AT, 0, "access"},
    {SYS_faccessat2, PATH_AT, 0, "access"}, {SYS_readlink, PATH, 0, "readlink"},
    {SYS_readlinkat, PATH_AT, 0, "readlink"}, {SYS_mkdir, PATH, 0, "mkdir"}, {SYS_mkdirat, PATH_AT, 0, "mkdir"},
    {SYS_link, PATH, 0, "link"}, {SYS_linkat, PATH_AT, 0, "link"}, {SYS_unlink, PATH, 0, "unlink"},
    {SYS_unlinkat, PATH_AT, 0, "unlink"}, {SYS_rename, PATH, 0, "rename"}, {SYS_renameat, PATH_AT, 0, "rename"},
    {SYS_renameat2, PATH_AT, 0, "rename"}, {SYS_pipe, MAKES, 0, "pipe"}, {SYS_pipe2, MAKES, 0, "pipe"},
    {SYS_poll, MAKES, 0, "poll"}, {SYS_ppoll, MAKES, 0, "poll"}, {SYS_fork, MAKES, 0, "fork"},
    {SYS_vfork, MAKES, 0, "fork"}, {SYS_execve, PATH, 0, "execve"}, {SYS_socket, MAKES, 0, "socket"},
    {SYS_socketpair, MAKES, 0, "socketpair"}, {SYS_connect, HANDLE, 0, "connect"},
    {SYS_sendto, HANDLE, 2, "send"}, {SYS_recvfrom, HANDLE, 2, "receive"}, {SYS_sendmsg, HANDLE, 0, "send"},
    {SYS_sendmmsg, HANDLE, 0, "send"}, {SYS_recvmsg, HANDLE, 0, "receive"},
    {SYS_setsockopt, HANDLE, 0, "setsockopt"}, {SYS_getsockopt, HANDLE, 0, "getsockopt"},
    {SYS_getsockname, HANDLE, 0, "getsockname"}, {SYS_getpeername, HANDLE, 0, "getpeername"},
    {SYS_epoll_create1, MAKES, 0, "epoll_create"}, {SYS_epoll_ctl, HANDLE, 0, "epoll_ctl"},
    {SYS_epoll_wait, HANDLE, 0, "epoll_wait"}, {SYS_epoll_pwait, HANDLE, 0, "epoll_wait"},
    {SYS_select, MAKES, 0, "select"}, {SYS_pselect6, MAKES, 0, "select"}, {SYS_bind, HANDLE, 0, "bind"}, {SYS_shutdown, HANDLE, 0, "shutdown"},
};
static const int others[] = { /* memory, signals, clocks, threads, identity, ends of processes: no I/O */
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_mremap, SYS_madvise, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_kill, SYS_tgkill, SYS_sched_yield,
    SYS_sched_getaffinity, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_gettimeofday, SYS_time,
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getpgrp, SYS_getsid, SYS_getuid, SYS_geteuid,
    SYS_getgid, SYS_getegid, SYS_umask, SYS_uname, SYS_getcwd, SYS_sysinfo, SYS_arch_prctl, SYS_prctl,
    SYS_prlimit64, SYS_getrlimit, SYS_getrandom, SYS_futex, SYS_set_tid_address, SYS_set_robust_list,
    SYS_rseq, SYS_restart_syscall, SYS_clone, SYS_clone3, SYS_wait4, SYS_waitid, SYS_exit, SYS_exit_group,
    SYS_getrusage, SYS_times, SYS_membarrier,
};

static const char *report, *store, *scratch, *kind, *wanted;
static long use;
static pid_t program;
static int armed, fired, holding;
static char target[HANDLES][32];
static struct { char name[96]; long uses; } calls[CALLS];
static int known;
static int unknown[1024];
static struct thread { pid_t id; const struct call *call; unsigned long long args[6]; char path[TEXT]; int result; }
    threads[THREADS];

static struct thread *thread_of(pid_t id) {
    for (int at = 0; at < THREADS; at++) {
        if (threads[at].id == id) return &threads[at];
        if (!threads[at].id) {
            threads[at].id = id;
            return &threads[at];
        }
    }
    fprintf(stderr, "io_tracer: more than %d threads\n", THREADS);
    exit(125);
}

static void peek(pid_t id, unsigned long long from, void *into, size_t size) {
    struct iovec here = {into, size}, there = {(void *)from, size};
    if (process_vm_readv(id, &here, 1, &there, 1, 0) < 0) memset(into, 0, size);
}

static void peek_text(pid_t id, unsigned long long from, char *into) {
    size_t at = 0;
    while (at < TEXT - 1) { /* not beyond the page that the text may end in */
        size_t size = 4096 - (from + at) % 4096;
        if (size > TEXT - 1 - at) size = TEXT - 1 - at;
        peek(id, from + at, into + at, size);
        if (memchr(into + at, 0, size)) return;
        at += size;
    }
    into[at] = 0;
}

static const char *of_path(const char *path) {
    if (*store && !strncmp(path, store, strlen(store))) {
        if (strstr(path, "/requests")) return "requests";
        if (strstr(path, ".part")) return "part";
        if (strstr(path, ".state")) return "state";
        if (strstr(path, ".manifest.json")) return "manifest";
        if (strstr(path, "/answer-")) return "answer";
        return "store";
    }
    if (strstr(path, "yarnctl-suspending")) return "suspending";
    if (!strncmp(path, scratch, strlen(scratch))) return "scratch";
    return "system";
}

static const struct call *call_of(int number) {
    for (size_t at = 0; at < sizeof table / sizeof *table; at++)
        if (table[at].number == number) return &table[at];
    for (size_t at = 0; at < sizeof others / sizeof *others; at++)
        if (others[at] == number) return NULL;
    if (number >= 0 && number < 1024 && armed) unknown[number] = 1;
    return NULL;
}

static int forks(struct __ptrace_syscall_info *info) {
    unsigned long long flags = info->entry.args[0];
    return info->entry.nr == SYS_clone && !(flags & CLONE_THREAD);
}

static const char *name_of(struct thread *at, char *into) {
    const char *what = "";
    if (at->call->takes == HANDLE) what = at->args[0] < HANDLES ? target[at->args[0]] : "system";
    if (at->call->takes == PATH || at->call->takes == PATH_AT) what = of_path(at->path);
    snprintf(into, 96, "%s%s%s%s", at->call->name, *what ? " " : "", what, at->id == program ? "" : " beside");
    return into;
}

static long count(const char *name) {
    int at = 0;
    while (at < known && strcmp(calls[at].name, name)) at++;
    if (at == CALLS) exit(125);
    if (at == known) strcpy(calls[known++].name, name);
    return ++calls[at].uses;
}

static void set(pid_t id, size_t offset, unsigned long long value) {
    if (ptrace(PTRACE_POKEUSER, id, offset, value) < 0) exit(125);
}
#define REGISTER(name) (8 * (offsetof(struct user_regs_struct, name) / 8))

static int number_of_error(void) {
    if (!strcmp(kind, "EINTR")) return EINTR;
    return !strcmp(kind, "ENOSPC") || !strcmp(kind, "full") ? ENOSPC : EIO;
}

/* Do to this use of the call what was ordered. */
static void harm(struct thread *at) {
    int halves = !strcmp(kind, "short") || (!strcmp(kind, "full") && !holding);
    if (halves) {
        if (!at->call->second || at->args[2] < 2) return;
        set(at->id, REGISTER(rdx), at->args[2] / 2);
    } else {
        at->result = -number_of_error();
        if (strcmp(kind, "lost") && strcmp(at->call->name, "close")) set(at->id, REGISTER(orig_rax), -1ULL);
    }
    holding = !strcmp(kind, "ENOSPC") || !strcmp(kind, "full");
    fired++;
}

static void entered(struct thread *at, struct __ptrace_syscall_info *info) {
    static const struct call forking = {SYS_clone, MAKES, 0, "fork"};
    char name[96];
    at->result = 0;
    at->call = forks(info) ? &forking : call_of(info->entry.nr);
    if (!at->call) return;
    for (int each = 0; each < 6; each++) at->args[each] = info->entry.args[each];
    if (at->call->takes == PATH) peek_text(at->id, at->args[0], at->path);
    if (at->call->takes == PATH_AT) peek_text(at->id, at->args[1], at->path);
    if (!strcmp(at->call->name, "open") && strstr(at->path, "yarnctl_task")) armed = 1;
    if (!armed) return;
    name_of(at, name);
    long uses = count(name);
    if (!strcmp(name, wanted) && (uses == use || (holding && uses > use))) harm(at);
}

static void label(long long handle, const char *what) {
    if (handle >= 0 && handle < HANDLES) snprintf(target[handle], sizeof target[0], "%s", what);
}

static int duplicates(struct thread *at) {
    return at->args[1] == F_DUPFD || at->args[1] == F_DUPFD_CLOEXEC;
}

static void left(struct thread *at, struct __ptrace_syscall_info *info) {
    long long result = info->exit.rval;
    const char *name = at->call ? at->call->name : "";
    char what[32];
    if (at->call && at->result) set(at->id, REGISTER(rax), at->result);
    if (!strcmp(name, "close") && at->args[0] < HANDLES) target[at->args[0]][0] = 0;
    if (!at->call || at->result || result < 0) return;
    if (!strcmp(name, "open")) label(result, of_path(at->path));
    if (!strcmp(name, "socket")) label(result, "socket");
    if (!strcmp(name, "epoll_create")) label(result, "epoll");
    if ((!strncmp(name, "dup", 3) || (!strcmp(name, "fcntl") && duplicates(at))) && at->args[0] < HANDLES) {
        strcpy(what, target[at->args[0]]);
        label(result, what);
    }
    if (!strcmp(name, "pipe")) {
        int ends[2];
        peek(at->id, at->args[0], ends, sizeof ends);
        label(ends[0], "pipe-read");
        label(ends[1], "pipe-write");
    }
}

static void tell(void) {
    FILE *file = fopen(report, "w");
    if (!file) exit(125);
    for (int at = 0; at < known; at++) fprintf(file, "%ld\t%s\n", calls[at].uses, calls[at].name);
    for (int at = 0; at < 1024; at++)
        if (unknown[at]) fprintf(file, "unknown\t%d\n", at);
    fprintf(file, "fired\t%d\n", fired);
    if (fclose(file)) exit(125);
}

/* Handle one stop; return the signal to go on with. */
static int stopped(pid_t id, int status) {
    int number = WSTOPSIG(status), event = status >> 16;
    struct thread *at = thread_of(id);
    struct __ptrace_syscall_info info;
    if (number == (SIGTRAP | 0x80)) {
        if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) < 0) return 0;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) entered(at, &info);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT) left(at, &info);
        return 0;
    }
    if (event || number == SIGSTOP) return 0; /* a new thread's first stop; nobody else sends SIGSTOP here */
    return number;
}

static int trace(void) {
    int status;
    for (;;) {
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0) {
            if (errno == EINTR) continue;
            return 125;
        }
        if (WIFSTOPPED(status)) {
            if (status >> 16 == PTRACE_EVENT_EXEC && armed) {
                ptrace(PTRACE_DETACH, id, 0, 0); /* it has become the reducer */
                continue;
            }
            int number = stopped(id, status);
            ptrace(PTRACE_SYSCALL, id, 0, number); /* fails where it was killed meanwhile: then its end is told */
        } else if (id == program) {
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 9 || strcmp(argv[7], "--")) {
        fprintf(stderr, "usage: io_tracer REPORT STORE SCRATCH KIND CALL USE -- PROGRAM ...\n");
        return 125;
    }
    report = argv[1], store = argv[2], scratch = argv[3], kind = argv[4], wanted = argv[5], use = atol(argv[6]);
    for (int handle = 0; handle < 3; handle++) target[handle][0] = (char)(48 + handle);
    program = fork();
    if (program < 0) return 125;
    if (!program) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[8], argv + 8);
        _exit(127);
    }
    for (int handle = 0; handle < 3; handle++) close(handle); /* whoever reads them waits for the program alone */
    int status;
    waitpid(program, &status, 0);
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options) < 0) return 125;
    ptrace(PTRACE_SYSCALL, program, 0, 0);
    int code = trace();
    tell();
    return code;
}
