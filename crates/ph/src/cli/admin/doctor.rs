//! `ph doctor`: checks the home, the journal, the settings, the sessions and the agents.

use crate::cli::prelude::*;
use crate::output::{Output, counted, progress, progress_done};
use anstream::ColorChoice;
use anstyle::AnsiColor;
use posthaste_client::session::sessions;
use posthaste_core::harness::version;
use posthaste_session::harness::installed;
use posthaste_store::health::Health;
use posthaste_store::live::process::is_program;
use posthaste_store::{Error, Home, Journal};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Check permissions, the journal, versions and installed agents
///
/// Prints one finding per line and exits with 1 if any is a problem. Changes nothing without
/// --rebuild-views.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph doctor
  ph doctor --rebuild-views")]
pub(crate) struct Args {
    /// Delete the derived tables and rebuild them from the facts
    #[arg(long)]
    rebuild_views: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingKind {
    Ok,
    /// Information that is not a problem.
    Info,
    Wrong,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: FindingKind,
    detail: String,
    hint: Option<String>,
}

/// The hint for a damaged journal.
const RESTORE_HINT: &str = "import an export into a new home with 'ph import'";

/// Optional programs that Posthaste works with.
const OPTIONAL_PROGRAMS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "tmux"];

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let mut findings = vec![
        ok("version", format!("ph {}", env!("CARGO_PKG_VERSION"))),
        ok(
            "home",
            format!(
                "{} (from {})",
                context.home.path().display(),
                context.home_source
            ),
        ),
    ];
    findings.extend(permissions(&context.home));
    findings.extend(disk_space(&context.home));
    match Journal::open_existing(context.home.clone(), context.config.patience) {
        Ok(None) => findings.push(info("journal", "nothing stored yet")),
        Ok(Some(mut journal)) => {
            if args.rebuild_views {
                progress("rebuilding the views");
                let rebuilt = journal.rebuild_views();
                progress_done();
                rebuilt?;
                findings.push(ok("views", "rebuilt from the facts"));
            }
            progress("checking the journal");
            let found = journal_findings(&mut journal);
            progress_done();
            findings.extend(found);
        }
        Err(error) => findings.push(damaged(&error)),
    }
    findings.push(match &context.trouble {
        Some(report) => failed("settings", report),
        None => ok("settings", config_detail(context)),
    });
    findings.extend(match context.config.mail.script() {
        Ok(script) => script.map(|settings| mail(&settings.path)),
        Err(report) => Some(failed("mail", &report)),
    });
    findings.extend(session_findings(context));
    findings.extend(OPTIONAL_PROGRAMS.map(|program| optional_program(context, program)));
    print(&mut context.out, context.json, &findings)?;
    let has_problem = findings.iter().any(|it| it.verdict == FindingKind::Wrong);
    Ok(if has_problem { Code::No } else { Code::Ok })
}

/// Report that the home cannot be used. Read nothing in it.
pub(crate) fn report_unusable_home(options: &GlobalOptions, report: &Report) -> Result<Code> {
    let findings = [
        ok("version", format!("ph {}", env!("CARGO_PKG_VERSION"))),
        failed("home", report),
    ];
    let mut out = Output::new(ColorChoice::Auto);
    print(&mut out, options.json, &findings)?;
    out.flush()?;
    Ok(Code::No)
}

impl Finding {
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn finding(check: &'static str, verdict: FindingKind, detail: impl Into<String>) -> Finding {
    Finding {
        check,
        verdict,
        detail: detail.into(),
        hint: None,
    }
}

fn ok(check: &'static str, detail: impl Into<String>) -> Finding {
    finding(check, FindingKind::Ok, detail)
}

fn info(check: &'static str, detail: impl Into<String>) -> Finding {
    finding(check, FindingKind::Info, detail)
}

fn wrong(check: &'static str, detail: impl Into<String>) -> Finding {
    finding(check, FindingKind::Wrong, detail)
}

fn damaged(error: &Error) -> Finding {
    let hint = match error {
        Error::Corrupt { .. } => Some(RESTORE_HINT.to_owned()),
        other => other.hint(),
    };
    Finding {
        hint,
        ..wrong("journal", error.to_string())
    }
}

fn failed(check: &'static str, report: &Report) -> Finding {
    Finding {
        hint: report.advice().map(str::to_owned),
        ..wrong(check, report.message())
    }
}

fn permissions(home: &Home) -> Option<Finding> {
    let open_to_others = |path: &Path| {
        path.metadata()
            .ok()
            .map(|meta| meta.permissions().mode() & 0o777)
            .filter(|mode| mode & 0o077 != 0)
    };
    // A directory without a journal is not a home yet: its permissions are not checked.
    if !home.has_journal().unwrap_or(false) {
        return None;
    }
    let loose: Vec<_> = [
        home.path().to_owned(),
        home.journal(),
        home.path().join("messages"),
    ]
    .into_iter()
    .filter_map(|path| {
        open_to_others(&path).map(|mode| format!("{} has mode {mode:o}", path.display()))
    })
    .collect();
    Some(if loose.is_empty() {
        ok("permissions", "private to its user")
    } else {
        let hint = format!("chmod -R go-rwx {}", home.path().display());
        wrong("permissions", loose.join(", ")).hint(hint)
    })
}

/// Free space below which the disk counts as full: enough for a few large messages.
const LOW_DISK_BYTES: u64 = 16 << 20;

/// Return a finding if the disk of the home is nearly full.
fn disk_space(home: &Home) -> Option<Finding> {
    let disk = rustix::fs::statvfs(home.path()).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    (free < LOW_DISK_BYTES).then(|| {
        let detail = format!(
            "the disk that holds {} is nearly full: {} KiB are free",
            home.path().display(),
            free / 1024
        );
        wrong("disk", detail).hint("free some space")
    })
}

/// Return the sessions that get no mail from the mail script, and those whose program has an
/// untested version.
fn session_findings(context: &Context) -> Vec<Finding> {
    // Problems of the home itself are separate findings.
    let sessions = sessions::running(&context.home, context.config.patience, context.now);
    let sessions = sessions.unwrap_or_default();
    let mut findings = Vec::new();
    for session in &sessions {
        if let Some(trouble) = &session.mail_trouble {
            let detail = format!("{} gets no mail: {}", session.name, trouble.what);
            findings.push(wrong("mail", detail));
        }
    }
    for session in &sessions {
        if let (Some(version), tested @ [_, ..]) = (&session.version, &session.tested_versions[..])
        {
            let detail = version::described(version, tested);
            let detail = format!("{} runs {} {detail}", session.name, session.harness);
            findings.push(info("version", detail));
        }
    }
    findings
}

/// Report the path and version of an optional program.
fn optional_program(context: &Context, program: &'static str) -> Finding {
    let path = std::env::var_os("PATH");
    let found = path.and_then(|path| installed::on_path(program, &path, Path::new("/")));
    let Some(found) = found else {
        return info(program, "not installed");
    };
    let shown = found.display().to_string();
    let harness = context
        .catalogue()
        .and_then(|catalogue| catalogue.take(program));
    let known = harness.ok().map(|harness| harness.version);
    let version = known.and_then(|known| {
        let version = installed::version_of(&found, &known)?;
        let tested = known.tested_instead(Some(&version));
        let detail = format!("{shown}, version {}", version::described(&version, tested));
        Some(match tested {
            [] => ok(program, detail),
            [_, ..] => info(program, detail),
        })
    });
    version.unwrap_or_else(|| ok(program, shown))
}

/// Report whether the mail script is executable.
fn mail(script: &Path) -> Finding {
    let shown = text::visible(&script.display().to_string());
    if is_program(script) {
        ok("mail", format!("kept by {shown}"))
    } else {
        wrong(
            "mail",
            format!("kept by {shown}, which is not an executable file"),
        )
        .hint("the setting mail.provider names it; 'chmod +x' makes it executable")
    }
}

fn journal_findings(journal: &mut Journal) -> Vec<Finding> {
    let health = match journal.examine() {
        Ok(health) => health,
        Err(error) => return vec![damaged(&error)],
    };
    let whole = if health.damage.is_empty() {
        ok(
            "journal",
            format!(
                "{}, SQLite {}, integrity ok",
                counted(health.facts, "fact"),
                health.sqlite_version
            ),
        )
    } else {
        wrong("journal", health.damage.join("; ")).hint(RESTORE_HINT)
    };
    let versions: Vec<_> = health.view_versions.iter().map(u32::to_string).collect();
    let views = ok(
        "views",
        format!(
            "version {}; WAL {} KiB",
            versions.join(", "),
            health.wal_bytes / 1024
        ),
    );
    let mut findings = vec![whole];
    findings.extend(content_findings(&health));
    findings.push(views);
    findings
}

/// Return the problems of facts and of message files.
fn content_findings(health: &Health) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !health.is_gap_free {
        findings.push(wrong(
            "numbers",
            "facts are missing: there is a gap in their sequence numbers",
        ));
    }
    if health.odd_count > 0 {
        let named: Vec<_> = health
            .odd
            .iter()
            .map(|(seq, why)| format!("{seq}: {why}"))
            .collect();
        let detail = format!(
            "{} unknown to this version ({})",
            counted(health.odd_count, "fact"),
            named.join("; ")
        );
        findings.push(info("facts", detail));
    }
    if health.stray_files > 0 {
        let count = counted(health.stray_files, "message file");
        let detail = format!("{count} without a message in the journal");
        let hint = "an interrupted send leaves one; many mean that a journal was lost";
        findings.push(wrong("files", detail).hint(hint));
    }
    if !health.lost_bodies.is_empty() {
        let ids: Vec<_> = health.lost_bodies.iter().map(|id| id.id8()).collect();
        let detail = format!("the bodies of {} are lost", ids.join(", "));
        findings.push(wrong("bodies", detail));
    }
    findings
}

fn config_detail(context: &Context) -> String {
    let there: Vec<_> = context
        .config_files
        .iter()
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    if there.is_empty() {
        "no file; the defaults apply".to_owned()
    } else {
        there.join(", ")
    }
}

fn print(out: &mut Output, is_json: bool, findings: &[Finding]) -> Result<()> {
    if is_json {
        return out.json(&findings);
    }
    for finding in findings {
        let (word, style) = match finding.verdict {
            FindingKind::Ok => ("ok   ", AnsiColor::Green.on_default()),
            FindingKind::Info => ("-    ", anstyle::Style::new().dimmed()),
            FindingKind::Wrong => ("WRONG", AnsiColor::Red.on_default().bold()),
        };
        out.line(format!(
            "{style}{word}{style:#}  {:<11}  {}",
            finding.check,
            text::visible(&finding.detail)
        ))?;
        if let Some(hint) = &finding.hint {
            out.line(format!("       hint: {}", text::visible(hint)))?;
        }
    }
    Ok(())
}
