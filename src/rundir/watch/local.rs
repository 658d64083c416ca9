//! Which file systems tell everything that happens in them to a watch.

use std::path::Path;

/// Whether all that changes below this path passes through this kernel, so that a watch on it misses nothing: not where
/// another machine or a program may change files behind its back (network file systems, FUSE, shared folders of virtual
/// machines), and not where that is unknown. Only Linux says what kind of file system it is.
#[must_use]
pub fn tells_everything(path: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::fs::statfs(path).is_ok_and(|found| LOCAL.iter().any(|(_, magic)| found.f_type as u64 == *magic));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}

/// The numbers by which statfs(2) names file systems on disks and in memory of this machine.
#[cfg(target_os = "linux")]
const LOCAL: &[(&str, u64)] = &[
    ("ext2, ext3, ext4", 0xEF53),
    ("xfs", 0x5846_5342),
    ("btrfs", 0x9123_683E),
    ("bcachefs", 0xCA45_1A4E),
    ("f2fs", 0xF2F5_2010),
    ("jfs", 0x3153_464A),
    ("nilfs2", 0x3434),
    ("reiserfs", 0x5265_4973),
    ("zfs", 0x2FC1_2FC1),
    ("tmpfs", 0x0102_1994),
    ("ramfs", 0x8584_58F6),
    // What is written through it is told; the layers below are nobody's to write.
    ("overlayfs", 0x794C_7630),
];

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_makes_up_and_what_is_not_there_is_not_trusted() {
        assert!(!tells_everything(Path::new("/proc")));
        assert!(!tells_everything(Path::new("/no/such/folder")));
        // Memory that programs share is a tmpfs wherever there is one.
        if Path::new("/dev/shm").is_dir() {
            assert!(tells_everything(Path::new("/dev/shm")));
        }
    }
}
