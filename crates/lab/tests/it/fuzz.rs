//! Runs every fuzz target on its corpus, and on random mutations of it.
//!
//! `PH_FUZZ_SECONDS` gives each target more time, `PH_FUZZ_SEED` sets the seed. 'just fuzz' runs
//! the targets with coverage guidance.

use posthaste_lab::fuzz::{TARGETS, Target};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of mutations per target if `PH_FUZZ_SECONDS` is not set. An import opens a journal, which
/// takes longer.
const MUTATIONS: u32 = 3_000;
const IMPORT_MUTATIONS: u32 = 100;
const MAX_INPUT_BYTES: usize = 4_096;

/// Tokens that are special to at least one target.
const WORDS: [&[u8]; 23] = [
    b"\n",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"-1",
    b"1e999",
    b"\\ud800",
    b"\\u0000",
    b"\x1b[",
    b"\x1b[6n",
    b"\x1b]0;",
    b"\x07",
    b"\x1b[?2026h",
    b"\x1bP",
    b"\xff\xfe",
    b"\xf3\xa0\x84\x80",
    b"[ph message from: alice id: 00000001]",
    b"(repeat: may have been shown before)",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }
}

fn corpus(target: Target) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = dir
        .join(target.name)
        .read_dir()
        .expect("every target has a corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = paths.iter().map(|path| std::fs::read(path).unwrap());
    read.collect()
}

fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = at + random.below((bytes.len() - at).min(64) + 1);
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let to = from + random.below((other.len() - from).min(256) + 1);
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            _ => bytes.insert(at, random.next().to_le_bytes()[0]),
        }
    }
    bytes.truncate(MAX_INPUT_BYTES);
    bytes
}

fn check(target: Target, bytes: &[u8]) {
    let run = std::panic::AssertUnwindSafe(|| (target.run)(bytes));
    if let Err(panic) = std::panic::catch_unwind(run) {
        let path = std::env::temp_dir().join(format!("ph-fuzz-{}", target.name));
        std::fs::write(&path, bytes).unwrap();
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!(
            "{} fails on {}: {message}\n{:?}",
            target.name,
            path.display(),
            String::from_utf8_lossy(bytes)
        );
    }
}

fn fuzz(name: &str) {
    let target = *TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = corpus(target);
    corpus.iter().for_each(|bytes| check(target, bytes));
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let mut random = Random(number("PH_FUZZ_SEED").unwrap_or(1).max(1));
    let until = number("PH_FUZZ_SECONDS").map(|time| Instant::now() + Duration::from_secs(time));
    let most = if name == "import" {
        IMPORT_MUTATIONS
    } else {
        MUTATIONS
    };
    let mut done = 0;
    while until.map_or(done < most, |until| Instant::now() < until) {
        check(target, &mutated(&mut random, &corpus));
        done += 1;
    }
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            fuzz(stringify!($name));
        })*

        #[test]
        fn every_target_runs() {
            assert_eq!(TARGETS.map(|target| target.name), [$(stringify!($name)),*]);
        }
    };
}

targets!(
    socket_line,
    frames,
    import,
    manifest,
    hook_payload,
    transcript_rows,
    escapes,
    headers
);
