/*
 * Wraps vfork(2): the parent waits until the child has executed a program or exited.
 *
 * The child runs in the parent's memory and on its stack, and would overwrite the frame of a
 * wrapper in C. Like the C library's, this wrapper keeps its return address in a register during
 * the system call, and in another whether the wait is recorded; the kernel restores the parent's
 * registers. While the parent's call is open, the child's calls are not recorded.
 */
#include <sys/syscall.h>

#include "preload/call.h"
#include "preload/descriptors.h"

/* Opens the call. Returns whether it is recorded. */
int preload_vfork_begin(uintptr_t pc, uintptr_t sp, uintptr_t fp)
    __attribute__((visibility("hidden")));

/* Called in the parent with the system call's result. Returns vfork's result. */
pid_t preload_vfork_end(long result, int open) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "mov (%rsp), %rdi\n"
        "lea 8(%rsp), %rsi\n"
        "mov %rbp, %rdx\n"
        "sub $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call preload_vfork_begin\n"
        "add $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "mov %eax, %esi\n"
        "pop %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_register %rip, %rdi\n"
        "mov $58, %eax\n"
        "syscall\n"
        "push %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %rip, -8\n"
        "test %rax, %rax\n"
        "jnz 1f\n"
        "ret\n"
        "1: mov %rax, %rdi\n"
        "sub $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call preload_vfork_end\n"
        "add $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        /* The child may have overwritten the shadow stack's entry, so it is skipped. */
        "xor %ecx, %ecx\n"
        "rdsspq %rcx\n"
        "test %rcx, %rcx\n"
        "jz 2f\n"
        "mov $1, %ecx\n"
        "incsspq %rcx\n"
        "pop %rdx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_register %rip, %rdx\n"
        "notrack jmp *%rdx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %rip, -8\n"
        "2: ret\n"
        ".cfi_endproc\n"
        ".size vfork, . - vfork\n");

_Static_assert(SYS_vfork == 58, "the number in the wrapper");
#elif defined(__aarch64__)
/*
 * There is no system call of that name: clone has CLONE_VM, CLONE_VFORK and SIGCHLD. The kernel
 * keeps all registers but x0.
 */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl vfork\n"
        ".type vfork, %function\n"
        "vfork:\n"
        ".cfi_startproc\n"
        "hint 34\n" /* bti c; a no-op on older processors */
        "stp x29, x30, [sp, -16]!\n"
        ".cfi_adjust_cfa_offset 16\n"
        ".cfi_rel_offset x29, 0\n"
        ".cfi_rel_offset x30, 8\n"
        "mov x0, x30\n"
        "add x1, sp, 16\n"
        "mov x2, x29\n"
        "bl preload_vfork_begin\n"
        "ldp x29, x30, [sp], 16\n"
        ".cfi_adjust_cfa_offset -16\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "mov w9, w0\n"
        "mov x0, 0x4111\n"
        "mov x1, 0\n"
        "mov x2, 0\n"
        "mov x3, 0\n"
        "mov x4, 0\n"
        "mov x8, 220\n"
        "svc 0\n"
        "cbnz x0, 1f\n"
        "ret\n"
        "1: stp x29, x30, [sp, -16]!\n"
        ".cfi_adjust_cfa_offset 16\n"
        ".cfi_rel_offset x29, 0\n"
        ".cfi_rel_offset x30, 8\n"
        "mov w1, w9\n"
        "bl preload_vfork_end\n"
        "ldp x29, x30, [sp], 16\n"
        ".cfi_adjust_cfa_offset -16\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size vfork, . - vfork\n");

_Static_assert(SYS_clone == 220, "the number in the wrapper");
#endif

int preload_vfork_begin(uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    const struct unwind_start caller = {pc, sp, fp};
    descriptors_inherited();
    self.vforks++;
    return call_open(&caller, SHM_GROUP_IO, SHM_CHILD, 0, 0, 0);
}

pid_t preload_vfork_end(long result, int open)
{
    const struct brief_call call = {open != 0, true};
    self.vforks--;
    if (result < 0)
        errno = (int)-result;
    if (open && self_has_slot() && result > 0)
        self.slot->open_object = SHM_PROCESS | (uint64_t)result;
    brief_end(&call);
    return result < 0 ? -1 : (pid_t)result;
}
