//! Tasks that run beside the owner of the state, and report to it.

use crate::state::actions::Report;
use tokio::sync::mpsc;

/// Maximum number of reports that wait. A task that finds the queue full waits for room.
const REPORTS: usize = 16;

pub(super) struct Tasks {
    running: usize,
    reports: mpsc::Sender<Report>,
    reported: mpsc::Receiver<Report>,
}

impl Tasks {
    pub(super) fn new() -> Self {
        let (reports, reported) = mpsc::channel(REPORTS);
        Self {
            running: 0,
            reports,
            reported,
        }
    }

    pub(super) fn spawn(&mut self, task: impl Future<Output = Report> + 'static) {
        self.running += 1;
        let reports = self.reports.clone();
        tokio::task::spawn_local(async move {
            // If the session has ended, the report is dropped.
            let _ = reports.send(task.await).await;
        });
    }

    /// Wait for the next report.
    pub(super) async fn next(&mut self) -> Option<Report> {
        let report = self.reported.recv().await;
        self.running = self.running.saturating_sub(usize::from(report.is_some()));
        report
    }

    pub(super) fn are_done(&self) -> bool {
        self.running == 0
    }
}
