//! The shared library has a name of its own version, which programs that are linked with it look for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libaerostat.so.0");
}
