//! Recordings read by Wireshark's `tshark`.

use crate::command::root;
use std::path::Path;
use std::process::Command;

/// tshark's lines for the fields, or `None` if tshark is not available.
pub fn tshark(file: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    tshark_with("mpoa.lua", file, arguments)
}

/// The same with another script of `wireshark/`.
pub fn tshark_with(script: &str, file: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let script = root().join("wireshark").join(script);
    let lua = format!("lua_script:{}", script.display());
    let out = Command::new("tshark")
        .args(["-X", &lua, "-r"])
        .arg(file)
        .args(arguments)
        .output();
    let out = match out {
        Ok(out) => out,
        Err(error) => {
            println!("skipped: tshark cannot be run ({error}); Debian package tshark");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "tshark {arguments:?}: {said}");
    Some(
        String::from_utf8_lossy(&out.stdout)
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

/// Packets that are malformed, except by one mistake of tshark 4.0: it reads one octet too many behind AAL parameters
/// that end a CONNECT (9 octets; 0 to 3 octets of padding and the trailer of SSCOP follow), and says so of correct
/// messages. Source: measured with tshark 4.0.17 on recordings of real hosts.
pub fn malformed_filter() -> String {
    let last = (0..4).map(|pad| format!("frame[-{}:4] == 58:80:00:09", 4 + 9 + pad + 4));
    let last: Vec<_> = last.collect();
    let known = format!("q2931.message_type == 0x07 && ({})", last.join(" || "));
    format!("_ws.malformed && !({known})")
}
