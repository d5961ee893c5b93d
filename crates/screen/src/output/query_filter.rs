//! Removes a program's terminal queries from the output that attached terminals get.
//!
//! The session's own model answers the program; a person's terminal would answer again, into the
//! program's input. All other bytes pass unchanged and in order. The result never ends within an
//! escape sequence or a character, so that a redraw may follow, and no two parts of the output are
//! joined to a sequence that the program did not write.

use super::query::is_query;
use super::split_char::SplitChar;
use posthaste_core::text::escape::{Kind, Part, Scanner};

/// Maximum length of a query. A longer sequence passes without being held.
const MAX_QUERY_BYTES: usize = 4096;

/// Control character that asks a terminal for its identity.
const ENQ: u8 = 0x05;
const ESC: u8 = 0x1b;
/// Ends an unfinished sequence and has no other effect.
const STRING_TERMINATOR: &[u8] = b"\x1b\\";

/// Filter for one program's output.
#[derive(Debug, Default)]
pub struct QueryFilter {
    scanner: Scanner,
    /// Beginning of the unfinished sequence; empty if that is too long.
    held: Vec<u8>,
    is_too_long: bool,
    /// Kind of the string that ends with the ESC before: either the ESC belongs to its terminator,
    /// or it begins another sequence.
    escaped_string: Option<Kind>,
    /// Whether an unfinished sequence was passed on directly before this sequence.
    follows_unfinished: bool,
    split_char: SplitChar,
}

impl QueryFilter {
    /// Append to `out` the part of `bytes` that attached terminals get.
    pub fn pass(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if let Some((char, len)) = self.split_char.complete(&mut bytes) {
            out.extend_from_slice(&char[..len]);
        }
        while let Some((part, run)) = self.scanner.next_run(&mut bytes) {
            if let Some(kind) = self.escaped_string.take() {
                if part == Part::End(Kind::Escape) && run == b"\\" {
                    self.hold(STRING_TERMINATOR, out);
                    self.close(kind, out);
                    continue;
                }
                self.interrupt(kind, out);
            }
            match part {
                Part::Text => {
                    let is_last = bytes.is_empty();
                    let whole = if is_last {
                        self.split_char.hold(run)
                    } else {
                        run
                    };
                    if whole.contains(&ENQ) {
                        out.extend(whole.iter().filter(|byte| **byte != ENQ));
                    } else {
                        out.extend_from_slice(whole);
                    }
                }
                Part::Complete if run.len() <= MAX_QUERY_BYTES && is_query(run) => {}
                Part::Complete => out.extend_from_slice(run),
                Part::Begin(None) => self.begin(),
                Part::Begin(Some(kind)) if kind.is_string() => self.escaped_string = Some(kind),
                Part::Begin(Some(kind)) => self.interrupt(kind, out),
                Part::Embedded(_) if run == [ENQ] => {}
                Part::Introducer(_) | Part::Body(_) | Part::Embedded(_) => self.hold(run, out),
                Part::End(kind) | Part::Cancel(kind) => {
                    self.hold(run, out);
                    self.close(kind, out);
                }
            }
        }
    }

    /// Return whether nothing is held back, so that other output may be inserted here.
    pub fn at_rest(&self) -> bool {
        self.scanner.open().is_none() && self.split_char.is_empty()
    }

    /// Pass on the held bytes at the end of the output.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let (char, len) = self.split_char.take();
        out.extend_from_slice(&char[..len]);
        out.append(&mut self.held);
        if self.escaped_string.is_some() {
            out.push(ESC);
        }
        *self = Self::default();
    }

    fn begin(&mut self) {
        self.held.push(ESC);
        self.is_too_long = false;
        self.follows_unfinished = false;
    }

    /// An ESC ends the unfinished sequence of this kind and begins another.
    fn interrupt(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let is_kept = self.close(kind, out);
        self.begin();
        self.follows_unfinished = is_kept;
    }

    fn hold(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.is_too_long {
            out.extend_from_slice(bytes);
            return;
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > MAX_QUERY_BYTES {
            out.append(&mut self.held);
            self.is_too_long = true;
        }
    }

    /// Pass the held sequence on unless it is a query. Return whether it was passed on.
    ///
    /// A terminal that still waits for the end of the sequence before a query would join that
    /// sequence to the output after the query, maybe to a new query. A terminator in place of the
    /// query ends it, as the ESC of the query would have done.
    fn close(&mut self, kind: Kind, out: &mut Vec<u8>) -> bool {
        if self.is_too_long || !is_query(&self.held) {
            out.append(&mut self.held);
            return true;
        }
        if self.follows_unfinished {
            out.extend_from_slice(STRING_TERMINATOR);
        }
        if !kind.is_string() {
            // Control characters within the query still take effect.
            let executed = self
                .held
                .iter()
                .filter(|byte| (0x08..=0x0f).contains(*byte));
            out.extend(executed);
        }
        self.held.clear();
        false
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_output::{cut, query, token};
    use proptest::prelude::*;

    /// Sequences that a terminal answers.
    pub(crate) const QUERIES: [&str; 50] = [
        "\x05",
        "\x1bZ",
        "\x1b[c",
        "\x1b[0c",
        "\x1b[>c",
        "\x1b[>0c",
        "\x1b[=c",
        "\x1b[5n",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[?996n",
        "\x1b[20$p",
        "\x1b[?2026$p",
        "\x1b[>q",
        "\x1b[>0q",
        "\x1b[?u",
        "\x1b[?4m",
        "\x1b[11t",
        "\x1b[13t",
        "\x1b[13;2t",
        "\x1b[14t",
        "\x1b[14;2t",
        "\x1b[15t",
        "\x1b[16t",
        "\x1b[18t",
        "\x1b[19t",
        "\x1b[20t",
        "\x1b[21t",
        "\x1b[x",
        "\x1b[?1;1;0S",
        "\x1b[1$w",
        "\x1b[1;1;1;1;1;1*y",
        "\x1b]4;1;?\x07",
        "\x1b]4;1;?;2;?\x1b\\",
        "\x1b]5;0;?\x07",
        "\x1b]10;?\x07",
        "\x1b]11;?\x1b\\",
        "\x1b]19;?\x07",
        "\x1b]52;c;?\x07",
        "\x1b]52;;?\x1b\\",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b]1337;ReportCellSize\x07",
        "\x1b]10;?;?\x07",
        "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
        "\x1b_Ga=q\x1b\\",
        "\x1b]99;i=1:p=?;\x1b\\",
        "\x1b]99;p=?\x07",
        "\x1b]5522;type=read;Lg==\x1b\\",
        "\x1b]5522;id=1:type=read:loc=primary;Lg==\x07",
    ];

    /// Sequences that resemble queries.
    const STATEMENTS: [&str; 37] = [
        "text",
        "\x1b[m",
        "\x1b[1;31m",
        "\x1b[>4;1m",
        "\x1b[=5u",
        "\x1b[>5u",
        "\x1b[<u",
        "\x1b[u",
        "\x1b[s",
        "\x1b[22t",
        "\x1b[23;0t",
        "\x1b[8;24;80t",
        "\x1b[1t",
        "\x1b[!p",
        "\x1b[61\"p",
        "\x1b[5 q",
        "\x1b[1\"q",
        "\x1b[?6c",
        "\x1b[>4n",
        "\x1b[?2026h",
        "\x1b[4S",
        "\x1b[1;5r",
        "\x1b]4;1;rgb:1/2/3\x07",
        "\x1b]11;#123456\x1b\\",
        "\x1b]0;what?\x07",
        "\x1b]2;?\x07",
        "\x1b]104;1\x07",
        "\x1b]52;c;Zm9v\x07",
        "\x1b]8;;http://x.test/?\x1b\\",
        "\x1bPq#0;2;0\x1b\\",
        "\x1b_Gi=1;x\x1b\\",
        "\x1b_Ga=T,f=24;a=q\x1b\\",
        "\x1b]99;i=1;p=?\x1b\\",
        "\x1b]5522;type=write;type=read\x1b\\",
        "\x1b(B",
        "\x1b#8",
        "\x1bc",
    ];

    fn passed(chunks: &[&[u8]]) -> Vec<u8> {
        let mut filter = QueryFilter::default();
        let mut out = Vec::new();
        for chunk in chunks {
            filter.pass(chunk, &mut out);
        }
        filter.finish(&mut out);
        out
    }

    fn check(bytes: &[u8], want: &[u8]) {
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(&passed(&[bytes])), shown(want));
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(shown(&passed(&singly)), shown(want), "byte by byte");
    }

    #[test]
    fn queries_are_removed() {
        for query in QUERIES {
            check(query.as_bytes(), b"");
            check(format!("a{query}b\x1b[mc{query}").as_bytes(), b"ab\x1b[mc");
        }
        check(b"\x1b[6\nn", b"\n");
        check(b"\x1b[3\x051m", b"\x1b[31m");
        check(b"\x1b\r[6n", b"\r");
        check(b"\x1b[6\xc3n", b"");
        check(b"\x1b]11;?\x1b[31mx", b"\x1b[31mx");
        check(b"\x1b]11;?\x1b]10;?\x07x", b"x");
        check(b"\x1bP$qm\x1b[6nx", b"x");
    }

    #[test]
    fn other_output_passes_unchanged() {
        for statement in STATEMENTS {
            check(statement.as_bytes(), statement.as_bytes());
            let within = format!("a{statement}b");
            check(within.as_bytes(), within.as_bytes());
        }
        for raw in [
            b"\xff\xfe\x80 \xc3(".as_slice(),
            b"\x1b[31\x18m",
            b"\x1b\x1b\x1b[A",
            b"\x1b]0;open\x1a",
            b"\x1b[3",
            b"\x1b]0;x",
            b"\xf0\x9f",
        ] {
            check(raw, raw);
        }
        check("é漢😀".as_bytes(), "é漢😀".as_bytes());
    }

    #[test]
    fn a_removed_query_joins_no_other_query() {
        check(b"\x1b[\x1b[6nc", b"\x1b[\x1b\\c");
        check(b"\x1b\x1b[6n[c", b"\x1b\x1b\\[c");
        check(b"\x1b[\x1b[6\nnc", b"\x1b[\x1b\\\nc");
        check(b"\x1b[\x1b[6n\x1b[5nc", b"\x1b[\x1b\\c");
        check(b"\x1b]11;\x1b]10;?\x07?\x07", b"\x1b]11;\x1b\\?\x07");
        check(b"\x1b[\x1b[3\x05\x1b[6n1c", b"\x1b[\x1b[3\x1b\\1c");
        check(b"\x1b\x05]0;x\x1b[6nc", b"\x1b]0;x\x1b\\c");
        // No sequence is unfinished before the query.
        check(b"\x1b[\x18\x1b[6nc", b"\x1b[\x18c");
        check(b"\x1b[\x1b[m\x1b[6nc", b"\x1b[\x1b[mc");
        check(b"\x1b[\x1b[31\x1b[m\x1b[6nc", b"\x1b[\x1b[31\x1b[mc");
    }

    #[test]
    fn an_enquiry_before_a_string_is_removed() {
        check(b"\x1b\x05]0;x\x07", b"\x1b]0;x\x07");
        check(b"\x1b\x05P#0\x051\x1b\\", b"\x1bP#0\x051\x1b\\");
        check(b"\x1b\x05]1\x051;?\x07", b"\x1b]1\x051;?\x07");
    }

    #[test]
    fn a_sequence_that_is_too_long_passes() {
        let long = format!(
            "\x1b]52;c;{}\x1b\\after\x1b[6n",
            "x".repeat(3 * MAX_QUERY_BYTES)
        );
        check(long.as_bytes(), &long.as_bytes()[..long.len() - 4]);
        let endless = format!("\x1b[{}c", "1;".repeat(MAX_QUERY_BYTES));
        check(endless.as_bytes(), endless.as_bytes());
        let cut_off = format!("\x1bP{}\x1b[6nafter", "x".repeat(3 * MAX_QUERY_BYTES));
        check(
            cut_off.as_bytes(),
            cut_off.replace("\x1b[6n", "\x1b\\").as_bytes(),
        );
        for extra in 0..3 {
            let edge = format!("\x1b]11;?;{}\x07", "x".repeat(MAX_QUERY_BYTES - 9 + extra));
            let kept = edge.len() > MAX_QUERY_BYTES;
            check(edge.as_bytes(), if kept { edge.as_bytes() } else { b"" });
        }
    }

    #[test]
    fn the_filter_rests_only_between_sequences() {
        let mut filter = QueryFilter::default();
        let mut out = Vec::new();
        let mut check = |bytes: &[u8], rests: bool, want: &str| {
            filter.pass(bytes, &mut out);
            assert_eq!(filter.at_rest(), rests, "{bytes:?}");
            assert_eq!(String::from_utf8_lossy(&out), want);
        };
        check(b"a\x1b", false, "a");
        check(b"[3", false, "a");
        check(b"1m", true, "a\x1b[31m");
        check(b"b\xc3", false, "a\x1b[31mb");
        check(b"", false, "a\x1b[31mb");
        check(b"\xa9", true, "a\x1b[31mbé");
        check(b"\x1b]0;t\x1b", false, "a\x1b[31mbé");
        check(b"\\", true, "a\x1b[31mbé\x1b]0;t\x1b\\");
    }

    /// Pieces of sequences that form queries in many ways.
    fn fragment() -> impl Strategy<Value = Vec<u8>> {
        const PIECES: [&[u8]; 24] = [
            b"\x1b", b"[", b"]", b"P", b"_", b"\\", b"c", b"n", b"6", b"1", b";", b"?", b"=", b"$",
            b"q", b"G", b"a", b"Z", b"(", b"\x05", b"\x07", b"\n", b"\x18", b"\xc3",
        ];
        prop_oneof![
            4 => prop::sample::select(&PIECES[..]).prop_map(<[u8]>::to_vec),
            1 => query().prop_map(|query| query.as_bytes().to_vec()),
        ]
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_reads(
            parts in prop::collection::vec(prop_oneof![3 => token(), 1 => query().prop_map(str::to_owned)], 0..30),
            noise in prop::collection::vec(any::<u8>(), 0..20),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let bytes = [parts.concat().as_bytes(), &noise].concat();
            let once = passed(&[&bytes]);
            prop_assert_eq!(&passed(&cut(&bytes, &places)), &once);
            prop_assert_eq!(passed(&[&once]), once);
        }

        #[test]
        fn filtering_twice_equals_filtering_once(
            parts in prop::collection::vec(fragment(), 0..12),
        ) {
            let once = passed(&[&parts.concat()]);
            prop_assert_eq!(passed(&[&once]), once);
        }

        #[test]
        fn no_query_survives(
            parts in prop::collection::vec((token(), query()), 0..20),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let with_queries: String = parts.iter().flat_map(|(token, query)| [token.as_str(), query]).collect();
            let without_queries: String = parts.iter().map(|(token, _)| token.as_str()).collect();
            let out = passed(&cut(with_queries.as_bytes(), &places));
            prop_assert_eq!(String::from_utf8(out).unwrap(), without_queries.clone());
            prop_assert_eq!(passed(&[without_queries.as_bytes()]), without_queries.as_bytes());
        }
    }
}
