//! Labs in real time, by the command: hosts of the kernel, programs of the machine, daemons that die.
//!
//! These tests wait more than they compute, and a loaded machine makes them late. `cargo test` leaves them out;
//! `cargo test -p aerostat-cli --test real` runs them. A test whose program, device or privilege is missing is skipped
//! with the reason.

mod absent;
mod any_aal;
mod atm_addresses;
mod atm_sockets;
mod atp_sockets;
mod bridges;
mod by_ip;
mod captures;
mod cells;
mod check;
mod clib;
mod clip;
mod converge;
mod converge_kernel;
mod extcap;
mod fault;
mod files;
mod floods;
mod follow;
mod graph;
mod hardened;
mod host;
mod joined;
mod kernel_tcp;
mod lane_programs;
mod line_ports;
mod links;
mod linux_atm;
mod live;
mod local_calls;
mod locale;
mod looks;
mod metrics;
mod mount;
mod names;
mod nhrp;
mod oam;
mod pages;
mod partial;
mod pictures;
mod policing;
mod preload;
mod preload_processes;
mod privileges;
mod promises;
mod proxies;
mod pseudowires;
mod pvc;
mod qos;
mod reproduce_live;
mod rfc1483;
mod ring;
mod socket_examples;
mod socket_group;
mod split;
mod stuck;
mod transit;
mod tunnels;
mod up_results;
mod upgrade;
mod vetting;
mod view;
mod wakeups;

use aerostat_testing::command::{Ran, command, json, lab_file, piped, rest_of, root, run};
use aerostat_testing::{schema, wireshark};
use live::Runtime;

/// The beginning and the end of most tests.
impl Runtime {
    /// With this lab running, all of its hosts embedded.
    fn embedded(test: &str, lab: &str) -> Self {
        let runtime = Self::new(test);
        let file = lab_file(&format!("{test}.atm.yml"), lab);
        runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
        runtime
    }
    /// Stops the lab, and holds that nothing of it is left.
    fn ends(&self) {
        self.ok(&["down"]);
        self.nothing_is_left();
    }
}
