//! The names of users, for the record of who asked for something (product 7). Taken from the system's list, never from
//! what a process or a file says of itself.

use std::io::Read;

/// The most bytes that are read of the list.
const MOST: u64 = 4 * 1024 * 1024;

/// The name of a user id by `/etc/passwd`; `uid N` where the list does not know it.
#[must_use]
pub fn name(uid: u32) -> String {
    let mut list = Vec::new();
    if let Ok(file) = std::fs::File::open("/etc/passwd") {
        // What could be read before a failure is as good as a shorter list.
        let _ = file.take(MOST).read_to_end(&mut list);
    }
    name_in(&list, uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// The name of the user that this process acts as.
#[must_use]
pub fn own_name() -> String {
    name(rustix::process::geteuid().as_raw())
}

/// The name of a user id in a list with the fields of passwd(5).
fn name_in(list: &[u8], uid: u32) -> Option<String> {
    list.split(|b| *b == b'\n').find_map(|line| {
        let mut fields = std::str::from_utf8(line).ok()?.split(':');
        let name = fields.next().filter(|n| !n.is_empty())?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_id_alone() {
        let list =
            b"root:x:0:0:root:/root:/bin/sh\nbroken\n\xff:x:7:\n:x:8:8::/:\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n";
        assert_eq!(name_in(list, 0).as_deref(), Some("root"));
        assert_eq!(name_in(list, 1000).as_deref(), Some("ann"));
        for unknown in [1, 7, 8, 100] {
            assert_eq!(name_in(list, unknown), None, "{unknown}");
        }
        assert_eq!(name(u32::MAX - 7), format!("uid {}", u32::MAX - 7));
        assert!(!own_name().is_empty());
    }
}
