//! Draws a terminal's text: standard input to an SVG on standard output. A line that begins with `$
//! ` was typed. Escape sequences are removed, so there are no colours.

use posthaste_core::text;
use std::fmt::Write as _;
use std::io::{Read, Write};

const WIDTH: usize = 108;
/// Width of a character, in tenths.
const CELL: usize = 84;
const ROW: usize = 20;
const EDGE: usize = 20;
/// Title bar with three dots.
const BAR: usize = 36;

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    std::io::stdout().write_all(picture(&text).as_bytes())
}

fn picture(text: &str) -> String {
    let lines: Vec<String> = text::lines(text).collect();
    let wide = 2 * EDGE + WIDTH * CELL / 10;
    let high = BAR + ROW * lines.len() + EDGE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
         viewBox=\"0 0 {wide} {high}\" font-size=\"14\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\">\n\
         <rect width=\"{wide}\" height=\"{high}\" rx=\"8\" fill=\"#16181d\" stroke=\"#3a3f4b\"/>\n"
    );
    for (at, colour) in ["#e0645c", "#dfb04c", "#62b560"].iter().enumerate() {
        let x = EDGE + 4 + 20 * at;
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"18\" r=\"5\" fill=\"{colour}\"/>"
        );
    }
    for (row, line) in lines.iter().enumerate() {
        let colour = if line.starts_with("$ ") {
            "#8fd18a"
        } else {
            "#d7dae0"
        };
        let y = BAR + ROW * row + ROW / 2 + 4;
        let shown = escaped(&line.chars().take(WIDTH).collect::<String>());
        let _ = writeln!(
            svg,
            "<text x=\"{EDGE}\" y=\"{y}\" fill=\"{colour}\" xml:space=\"preserve\">{shown}</text>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}
