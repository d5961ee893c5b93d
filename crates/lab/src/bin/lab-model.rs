//! The lab's model server as a program: `lab-model PORT LOGFILE`. Prints its port (0 selects a free
//! one) and runs until it is killed.

use posthaste_lab::model;
use std::error::Error;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [port, log] = args.as_slice() else {
        return Err("usage: lab-model PORT LOGFILE".into());
    };
    let port = port
        .parse()
        .map_err(|_| format!("{port:?} is not a port; 0 selects a free one"))?;
    let listener = model::listen(port)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", listener.local_addr()?.port())?;
    out.flush()?;
    drop(out);
    model::serve(listener, Path::new(log), std::future::pending())
}
