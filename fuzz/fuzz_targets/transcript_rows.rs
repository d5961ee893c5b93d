#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| posthaste_lab::fuzz::transcript_rows(bytes));
