//! Files that the command writes: a link that another user has planted at a name leads nowhere.

use crate::live::Runtime;
use crate::{command, lab_file, run};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const LAB: &str = "
capture: [x-s]
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10 }
  y: { on: s, elan: a, ip: 10.1.0.20 }
traffic: [{ from: x, to: y, kind: udp, rate: 100pps, start: 1s, duration: 200ms }]
";

/// Options that name files, by command, and whether they write files: a case below has each of those.
const OPTIONS: [(&str, &str, bool); 29] = [
    ("run", "--pcap", true),
    ("run", "--plot", true),
    ("run", "--out", true),
    ("run", "--events", true),
    ("run", "--view", true),
    ("sweep", "--points", false),
    ("sweep", "--out", true),
    ("sweep", "--plot", true),
    ("reproduce", "--calibrate", true),
    ("reproduce", "--parameters", false),
    ("reproduce", "--printed", false),
    ("reproduce", "--report", true),
    ("reproduce", "--keep", true),
    ("reproduce", "--catalogue", false),
    ("reproduce", "--compare", false),
    ("up", "--out", true),
    ("down", "--out", true),
    ("capture", "--write", true),
    ("inspect", "--out", true),
    ("atmaddr", "--out", true),
    ("atmarp", "--out", true),
    ("atmdiag", "--out", true),
    ("man", "--dir", true),
    ("check", "--all", false),
    ("check", "--checks", false),
    ("explain", "--repair", true),
    // Wireshark makes the pipe.
    ("extcap", "--fifo", false),
    ("view", "--module", false),
    ("view", "--site", true),
];

/// Commands in an empty folder, which write files there. LAB is the lab file; the links of its `capture:` are recorded
/// in the folder. MODULE is a file that begins as a simulator for browsers does, CAPTURE a recording.
const CASES: [&str; 13] = [
    "run LAB -q",
    "run LAB -q --pcap p --plot d --out o -o csv",
    "run LAB -q --seeds 1-2 --set capture=[] --out o -o json",
    "run LAB -q --plot x.svg --events e.jsonl --view v.html",
    "sweep LAB -q --set traffic.x-y.rate=100pps,200pps --set capture=[] --out o.csv --plot x.svg",
    "sweep LAB -q --set traffic.x-y.rate=100pps,200pps --set capture=[] --out o --plot d",
    "man --dir m",
    "view LAB --module MODULE --site w",
    "explain CAPTURE --repair r.pcapng",
    "reproduce thesis/5.1 -q --seeds 1 --report r",
    "reproduce sara/1 -q --seeds 1 --keep k",
    "reproduce thesis/5.1 -q --seeds 1 --calibrate c.yml",
    "up LAB -q --embedded -d --out o -o csv",
];

/// Commands beside the lab of the last case; the first one goes on until the last one ends the lab.
const BESIDE: [&str; 6] = [
    "capture --write c.pcapng",
    "inspect --out i -o csv",
    "atmaddr --out a -o csv",
    "atmarp -a --out b -o jsonl",
    "atmdiag --out g -o jsonl",
    "down --out e -o json",
];

/// The options of `aerostat SUB --help` whose values are names of files.
fn options_of(sub: &str) -> BTreeSet<String> {
    let help = run(&[sub, "--help"]).out;
    let lines = help.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with('-'));
    let named = lines.filter(|line| {
        ["<FILE", "<DIR", "<PATH>"]
            .iter()
            .any(|value| line.contains(value))
            && !line.contains("<PATH=")
    });
    // `--x <PATH>` of a sweep is a key of the lab file.
    let names = named.filter_map(|line| line.split(' ').find(|word| word.starts_with("--")));
    names
        .filter(|name| *name != "--x")
        .map(str::to_owned)
        .collect()
}

/// Every option of every command that names a file is one of the table, so that a new one gets its case.
#[test]
fn every_option_that_names_a_file_is_tried() {
    let help = run(&["--help"]).out;
    let list = help
        .lines()
        .filter(|line| line.starts_with("  ") && !line.trim_start().starts_with('-'));
    let subs: BTreeSet<&str> = list
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut found = BTreeSet::new();
    for sub in subs
        .iter()
        .filter(|sub| sub.chars().all(|c| c.is_ascii_alphanumeric()))
    {
        if *sub != "help" && sub.parse::<u8>().is_err() && *sub != "aerostat" {
            found.extend(
                options_of(sub)
                    .into_iter()
                    .map(|name| ((*sub).to_owned(), name)),
            );
        }
    }
    let known = OPTIONS
        .iter()
        .map(|(sub, name, _)| ((*sub).to_owned(), (*name).to_owned()));
    assert_eq!(found, known.collect());
    for (sub, option, writes) in OPTIONS {
        let mut cases = CASES.iter().chain(&BESIDE);
        let tried = cases.any(|case| case.starts_with(sub) && case.contains(option));
        assert!(tried || !writes, "{sub} {option}");
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(one).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => drop(found.insert(entry.path().strip_prefix(folder).unwrap().to_owned())),
            }
        }
    }
    found
}

/// Runs a case in a folder; what it says on standard error.
fn tried(
    case: &str,
    [lab, module, capture]: [&str; 3],
    runtime: &Runtime,
    folder: &Path,
) -> String {
    let start = |case: &str| {
        let words = case.split(' ').map(|word| match word {
            "LAB" => lab,
            "MODULE" => module,
            "CAPTURE" => capture,
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let mut command = runtime.command(&words);
        command.current_dir(folder);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let said = |child: Child| {
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let mut all = said(start(case));
    if case.starts_with("up") {
        let [capture, others @ ..] = BESIDE;
        let capture = start(capture);
        crate::live::wait_for("the file of the capture", || {
            let there = fs::symlink_metadata(folder.join("c.pcapng"));
            there.is_ok_and(|there| there.is_file())
        });
        for other in others {
            all += &said(start(other));
        }
        all += &said(capture);
    }
    all
}

/// Each case runs twice: the first time to learn the names of its files, and then with a link at each of these names,
/// and at those that the files have until they are complete. The links lead to a file of another owner.
#[test]
fn no_file_is_written_through_a_link() {
    let lab = lab_file("linked.atm.yml", LAB);
    let module = folder("module").join("module.js");
    fs::write(
        &module,
        concat!("// aerostat-web ", env!("CARGO_PKG_VERSION"), "\n"),
    )
    .unwrap();
    let captures = folder("captures");
    let pcap = format!("--pcap={}", captures.display());
    assert_eq!(run(&["run", &lab, "-q", &pcap]).code, 0);
    let capture = captures.join("x.pcapng");
    let given = [&*lab, module.to_str().unwrap(), capture.to_str().unwrap()];
    let victims = folder("victims");
    let mut seen = 0;
    for (number, case) in CASES.iter().enumerate() {
        let runtime = Runtime::new(&format!("linked{number}"));
        let plain = folder(&format!("plain{number}"));
        let said = tried(case, given, &runtime, &plain);
        if case.starts_with("up") {
            crate::live::wait_for("the results of the lab", || {
                let names = files(&plain);
                let unfinished = |name: &PathBuf| name.extension().is_some_and(|end| end == "part");
                names.contains(Path::new("o/run.json")) && !names.iter().any(unfinished)
            });
        }
        let names = files(&plain);
        assert!(!names.is_empty(), "{case:?}: {said}");
        let planted = folder(&format!("planted{number}"));
        for (place, name) in names.iter().enumerate() {
            let path = planted.join(name);
            let part = format!(".{}.part", name.file_name().unwrap().to_str().unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            for (path, which) in [(path.clone(), "name"), (path.with_file_name(part), "part")] {
                let victim = victims.join(format!("{number}-{place}-{which}"));
                fs::write(&victim, "secret").unwrap();
                symlink(&victim, &path).unwrap();
            }
        }
        let said = tried(case, given, &runtime, &planted);
        for name in &names {
            seen += 1;
            let whole = || {
                let there = fs::symlink_metadata(planted.join(name));
                there.is_ok_and(|there| there.is_file() && there.len() > 0)
            };
            if case.starts_with("up") {
                // The lab itself writes its results, perhaps a moment after 'down' has ended.
                crate::live::wait_for(&name.display().to_string(), whole);
            }
            // The runs of a sweep, and rows that are kept, are continued: a link there is an error in words, and there
            // is no table then.
            let continued = case.starts_with("sweep") || case.contains("--keep");
            let refused = continued && said.contains("this is a symbolic link");
            assert!(whole() || refused, "{case}: {}: {said}", name.display());
        }
        for victim in files(&victims) {
            let text = fs::read_to_string(victims.join(&victim)).unwrap();
            assert_eq!(text, "secret", "{case:?}: {}", victim.display());
        }
        for folder in [plain, planted] {
            fs::remove_dir_all(folder).unwrap();
        }
    }
    assert!(seen > 100, "{seen} files");
    fs::remove_dir_all(victims).unwrap();
}

/// A recording can go through a pipe that the user names, as to Wireshark.
#[test]
fn a_device_that_a_user_names_stays_a_device() {
    let lab = lab_file("device.atm.yml", LAB);
    let drawn = command(&[
        "run",
        &lab,
        "-q",
        "--set",
        "capture=[]",
        "--plot",
        "/dev/null",
    ])
    .output()
    .unwrap();
    let kind = fs::symlink_metadata("/dev/null").unwrap();
    assert!(!kind.is_file() && !kind.is_symlink(), "{drawn:?}");
}

/// The key `capture:` and the file are named where they cannot be written.
#[test]
fn a_recording_that_cannot_be_written_names_its_key_and_its_file() {
    let lab = lab_file("unwritten.atm.yml", LAB);
    let runtime = Runtime::new("unwritten");
    let folder = folder("unwritten");
    // A directory has the name of the file: this stops root, too.
    fs::create_dir(folder.join("unwritten.pcapng")).unwrap();
    for how in [&["run", &lab, "-q"][..], &["up", &lab, "-q", "--embedded"]] {
        let ran = runtime.command(how).current_dir(&folder).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(
            said.contains("the recording of 'capture:', unwritten.pcapng: "),
            "{said}"
        );
        assert!(
            said.contains("hint: links under 'capture:' are recorded in the current directory"),
            "{said}"
        );
    }
    fs::remove_dir_all(folder).unwrap();
}
