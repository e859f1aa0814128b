//! Scripts of TCP (`tests/tcp/*.script`) with this machine. The kernel has them in `crates/live/tests/real`.

use aerostat_proto::tcp::{Config, Input, Output, Profile, State, Tcp};
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_testing::tcp_script::{PORTS, Stack, run};
use aerostat_wire::tcp::Segment;

/// The machine, in virtual time.
struct Own {
    end: Tcp,
    now: Instant,
}

impl Own {
    fn new(profile: Profile) -> Self {
        let end = Tcp::new(Config {
            params: profile.params(),
            local: PORTS.0,
            remote: PORTS.1,
            seed: 1,
            phase: Duration::ZERO,
        });
        Self {
            end,
            now: Instant::ZERO,
        }
    }
}

impl Stack for Own {
    fn kind(&self) -> &'static str {
        "machine"
    }
    fn open(&mut self, listens: bool) {
        let input = if listens {
            Input::Listen
        } else {
            Input::Connect
        };
        self.end.handle_input(input, self.now).expect("opens");
    }
    fn inject(&mut self, segment: &Segment, data: &[u8]) {
        let marked = false;
        let input = Input::Segment {
            segment,
            data,
            marked,
        };
        self.end
            .handle_input(input, self.now)
            .expect("segments are never refused");
    }
    fn next(&mut self, wait: Duration) -> Option<(Segment, Vec<u8>, Duration)> {
        let from = self.now;
        loop {
            while let Some(output) = self.end.poll_output() {
                if let Output::Segment { segment, data, .. } = output {
                    return Some((segment, data, self.now.since(from)));
                }
            }
            match self.end.poll_timeout().filter(|at| *at <= from + wait) {
                Some(at) => self.now = at,
                None => {
                    self.now = from + wait;
                    return None;
                }
            }
            self.end.handle_timeout(self.now);
        }
    }
    fn write(&mut self, octets: usize) {
        self.end
            .handle_input(Input::Write(&vec![7; octets]), self.now)
            .expect("there is room");
    }
    fn read(&mut self, most: usize) -> usize {
        self.end.read(most, self.now).len()
    }
    fn close(&mut self) {
        self.end
            .handle_input(Input::Close, self.now)
            .expect("closes");
    }
    fn abort(&mut self) {
        self.end
            .handle_input(Input::Abort, self.now)
            .expect("aborts");
    }
}

#[test]
fn the_machine_answers_as_the_scripts_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp");
    let files = std::fs::read_dir(folder).expect("scripts");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 30);
    let mut wrong = Vec::new();
    for file in files {
        let script = std::fs::read_to_string(&file).expect("a script");
        let mut stack = Own::new(Profile::Linux);
        if let Err(error) = run(&script, &mut stack) {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A runner that finds no difference would be worthless.
#[test]
fn a_script_that_is_wrong_is_told_with_its_line() {
    let mut stack = Own::new(Profile::Linux);
    let error = run("peer mss=1000\nlisten\n< S 0\n> S. 0 ack 2", &mut stack);
    assert!(
        error.is_err_and(|error| error.starts_with("line 4") && error.contains("acknowledgement"))
    );
    let mut stack = Own::new(Profile::Linux);
    assert!(run("listen\nfly", &mut stack).is_err_and(|error| error.contains("no word")));
    assert_eq!(stack.end.state(), State::Listen);
}
