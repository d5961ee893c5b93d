//! Tasks that run beside the owner of the state and report to it.

use super::tasks::TaskReport;
use tokio::sync::mpsc;

/// Maximum number of reports that wait. A task that finds the queue full waits for room.
const REPORT_QUEUE_LENGTH: usize = 16;

pub(in crate::state) struct TaskQueue {
    reports: mpsc::Sender<TaskReport>,
    reported: mpsc::Receiver<TaskReport>,
}

impl TaskQueue {
    pub(in crate::state) fn new() -> Self {
        let (reports, reported) = mpsc::channel(REPORT_QUEUE_LENGTH);
        Self { reports, reported }
    }

    pub(in crate::state) fn spawn(&mut self, task: impl Future<Output = TaskReport> + 'static) {
        let reports = self.reports.clone();
        tokio::task::spawn_local(async move {
            // If the session has ended, the report is dropped.
            let _ = reports.send(task.await).await;
        });
    }

    /// Wait for the next report.
    pub(in crate::state) async fn next(&mut self) -> Option<TaskReport> {
        self.reported.recv().await
    }
}
