//! A filter of system calls (seccomp(2)): refuses what no thread of a front-end or an agent ever asks for once it runs.
//!
//! It lists what is refused, not what is allowed: see `docs/decisions/0033-privileges.md`.

#![allow(unsafe_code, reason = "no library passes the flag that has the kernel log what it refuses")]

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::PrivilegeError;

/// Other programs, other processes' memory, other users.
const PROCESSES: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_personality,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Its operations would pass this filter unseen.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The file system beyond files.
const FILE_SYSTEMS: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
];

/// The machine as a whole.
const MACHINE: &[c_long] = &[
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Second numbers of the calls above on x86-64, for programs with short pointers (x32): with this bit, and for some with
/// other numbers. Kernels that know them accept them from any program.
#[cfg(target_arch = "x86_64")]
const X32_BIT: c_long = 0x4000_0000;
/// Those that x32 numbers anew (`arch/x86/entry/syscalls/syscall_64.tbl`): execve, ptrace, `kexec_load`, `process_vm_readv`,
/// `process_vm_writev`, execveat.
#[cfg(target_arch = "x86_64")]
const X32_OWN: &[c_long] = &[520, 521, 528, 539, 540, 545];

/// Has the kernel refuse these calls to this thread and those that it starts, with `EPERM`; it notes each in its log. With
/// `uses_bpf` it does not refuse bpf(2).
///
/// # Errors
/// The kernel's; or there is no filter for this architecture.
pub(super) fn install(uses_bpf: bool) -> Result<(), PrivilegeError> {
    let what = "the kernel takes none";
    let compiled = program(uses_bpf).map_err(|error| io::Error::other(error.to_string()));
    compiled.and_then(|program| set(&program)).map_err(PrivilegeError::system(what))
}

fn program(uses_bpf: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let bpf: &[c_long] = if uses_bpf { &[] } else { &[libc::SYS_bpf] };
    let refused = [PROCESSES, FILE_SYSTEMS, MACHINE, bpf].concat();
    #[cfg(target_arch = "x86_64")]
    let refused = {
        let second = refused.iter().chain(X32_OWN).map(|number| number | X32_BIT);
        let second: Vec<c_long> = second.collect();
        [refused, second].concat()
    };
    // Without conditions on its arguments, a call is refused always.
    let rules: BTreeMap<i64, Vec<_>> = refused.into_iter().map(|number| (number, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn set(program: &BpfProgram) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        // The kernel only reads it; both types are the kernel's `struct sock_filter`.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the call reads `len` instructions at `filter`, which outlive it; seccompiler's type of an instruction has the
    // kernel's layout (`repr(C)`).
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_LOG,
            &raw const program,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
