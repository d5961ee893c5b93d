//! A future that is polled only when it was woken.
//!
//! The runtime polls its root whenever any task is woken. The root here is the owner of the state,
//! who waits for a dozen things and would look at each of them, for nothing, before every key and
//! every request.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(super) struct Woken<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Whether it was woken, and who is to poll it then.
struct Bell {
    is_rung: AtomicBool,
    outer: Mutex<Waker>,
}

impl<'a, T> Woken<'a, T> {
    pub(super) fn new(future: impl Future<Output = T> + 'a) -> Self {
        let bell = Arc::new(Bell {
            // The first look is free.
            is_rung: AtomicBool::new(true),
            outer: Mutex::new(Waker::noop().clone()),
        });
        Self {
            future: Box::pin(future),
            waker: bell.clone().into(),
            bell,
        }
    }
}

impl<T> Future for Woken<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, outer: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        // In this order: who rings from here on wakes whoever polls us now.
        this.bell.answers_to(outer.waker());
        if !this.bell.is_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future
            .as_mut()
            .poll(&mut Context::from_waker(&this.waker))
    }
}

impl Bell {
    fn answers_to(&self, waker: &Waker) {
        let mut outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner);
        outer.clone_from(waker);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner);
        outer.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;

    /// How often it was woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_polled_when_it_was_woken_and_not_else() {
        let looked = Cell::new(0);
        let (tell, told) = tokio::sync::oneshot::channel();
        let inner = async {
            let mut told = std::pin::pin!(told);
            std::future::poll_fn(|context| {
                looked.set(looked.get() + 1);
                told.as_mut().poll(context)
            })
            .await
        };
        let mut woken = std::pin::pin!(Woken::new(inner));
        let [first, second] = [(); 2].map(|()| Arc::new(Count::default()));
        let mut poll = |by: &Arc<Count>| {
            let waker = Waker::from(by.clone());
            woken.as_mut().poll(&mut Context::from_waker(&waker))
        };
        assert!(poll(&first).is_pending());
        assert!(poll(&first).is_pending());
        assert!(poll(&second).is_pending());
        assert_eq!(looked.get(), 1);
        tell.send(7).unwrap();
        // Whoever polled it last is told, though it did not look then.
        let counts = [&first, &second].map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(counts, [0, 1]);
        assert_eq!(poll(&second), Poll::Ready(Ok(7)));
        assert_eq!(looked.get(), 2);
    }
}
