#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| posthaste_lab::fuzz::socket_line(bytes));
