//! A run root on a disk of 64 KiB that a test can fill and free. It is a tmpfs of a mount namespace of the test's own, so
//! the test's body runs in a second process.

#[path = "namespace.rs"]
mod namespace;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use super::support::World;

/// A world whose root lies on a small disk.
pub struct SmallDisk {
    pub world: World,
}

/// Runs the test called `name` with a small disk.
pub fn on_a_small_disk(name: &str, body: impl FnOnce(&SmallDisk)) {
    namespace::in_a_namespace(name, || body(&SmallDisk::mount()));
}

impl SmallDisk {
    fn mount() -> Self {
        let world = World::new();
        fs::create_dir(world.root()).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=64k,mode=0700", "none"];
        let mounted = Command::new("mount").args(options).arg(world.root()).status().unwrap();
        assert!(mounted.success(), "a tmpfs for the root");
        Self { world }
    }

    fn filler(&self) -> PathBuf {
        self.world.root().join("filler")
    }

    /// Takes every page that is left.
    pub fn fill(&self) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.filler()).unwrap();
        let probe = self.world.root().join("probe");
        loop {
            while file.write_all(&[b'x'; 4096]).is_ok() {}
            let full = fs::write(&probe, "x");
            fs::remove_file(&probe).unwrap();
            // Somebody may just have given up a page.
            let Err(full) = full else { continue };
            assert_eq!(full.raw_os_error(), Some(28), "{full}");
            return;
        }
    }

    /// Gives so many pages back of those that [`SmallDisk::fill`] took.
    pub fn give(&self, pages: u64) {
        let file = fs::OpenOptions::new().write(true).open(self.filler()).unwrap();
        file.set_len(file.metadata().unwrap().len() - pages * 4096).unwrap();
    }

    /// Removes everything.
    pub fn empty(&self) {
        for entry in fs::read_dir(self.world.root()).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }

    /// Makes the disk large.
    pub fn grow(&self) {
        let options = ["-o", "remount,size=16m"];
        assert!(Command::new("mount").args(options).arg(self.world.root()).status().unwrap().success());
    }

    /// Gives them back.
    pub fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}
