//! Limits of this machine, measured in the same run as everything else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::net::UdpSocket;
use std::time::Instant;

/// Octets per second that `memcpy` moves, in blocks of `len` octets.
#[must_use]
pub fn memcpy(len: usize) -> f64 {
    let from = vec![0x5a_u8; len];
    let mut to = vec![0_u8; len];
    let rounds = 200_000_000 / len;
    let start = Instant::now();
    for _ in 0..rounds {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
    }
    (rounds * len) as f64 / start.elapsed().as_secs_f64()
}

/// Calls per second of a system call that does nothing (`getppid`).
#[must_use]
pub fn null_syscall() -> f64 {
    let rounds = 300_000;
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(std::os::unix::process::parent_id());
    }
    f64::from(rounds) / start.elapsed().as_secs_f64()
}

/// Datagrams of `len` octets per second through a UDP socket pair on the loopback, each sent and received.
///
/// # Errors
/// If there is no loopback.
pub fn datagrams(len: usize) -> std::io::Result<f64> {
    let (a, b) = (
        UdpSocket::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    );
    a.connect(b.local_addr()?)?;
    let (out, mut back) = (vec![1; len], vec![0; len]);
    let rounds = 50_000;
    let start = Instant::now();
    for _ in 0..rounds {
        a.send(&out)?;
        black_box(b.recv(&mut back)?);
    }
    Ok(f64::from(rounds) / start.elapsed().as_secs_f64())
}

/// Event queue operations per second: take the earliest of `waiting` events, put one later.
#[must_use]
pub fn heap(waiting: u64) -> f64 {
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> = (0..waiting).map(|n| Reverse((n, n))).collect();
    let rounds = 2_000_000_u64;
    let start = Instant::now();
    let mut state = 1_u64;
    for number in 0..rounds {
        if let Some(Reverse((at, _))) = heap.pop() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            heap.push(Reverse((at + (state >> 52), number)));
        }
    }
    black_box(&heap);
    rounds as f64 / start.elapsed().as_secs_f64()
}
