//! Annotations for rust_binding.py: `annotate FILE` records a trace of its own, `annotate` leaves that to trail record.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::thread;

use trail::{in_region, log, name, region, task, Category, Region};

static POOL: Category = Category::new(name!("pool"));

/// Ready at the third poll.
struct Third(u32);

impl Future for Third {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<u32> {
        self.0 += 1;
        if self.0 < 3 {
            Poll::Pending
        } else {
            Poll::Ready(self.0)
        }
    }
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

#[inline(never)]
fn parse(task: u64) {
    region!(task, "parse");
    region!("inner");
    log!(task, "words", "{} of {}", 1, 2);
    log!(0, "words", "cut\0here");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut evaluated = 0;
    log!(0, "off", "{}", {
        evaluated += 1;
        evaluated
    });
    let file = std::env::args_os().nth(1);
    if let Some(file) = &file {
        assert!(!trail::enabled() && evaluated == 0);
        let before = task!("before");
        assert_eq!(before.id(), 0);
        trail::start(std::fs::File::create(file)?)?;
        assert!(trail::start(std::fs::File::create("/dev/null")?).is_err());
    }
    assert!(trail::enabled());
    let request = task!("request");
    let part = task!(request.id(), "part");
    parse(request.id());

    // Three polls, each by a thread of its own.
    let id = part.id();
    let future = Arc::new(Mutex::new(Some(Box::pin(in_region(id, name!("fetch"), async { Third(0).await })))));
    for i in 1..=3 {
        let future = future.clone();
        thread::spawn(move || {
            let waker = Arc::new(Nothing).into();
            let ready = future.lock().unwrap().as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
            assert_eq!(ready, if i < 3 { Poll::Pending } else { Poll::Ready(3) });
        })
        .join()
        .unwrap();
    }
    thread::spawn(move || drop(part)).join().unwrap();

    trail::set_categories("-pool")?;
    drop(Region::new_in(&POOL, 0, name!("pool is off")));
    assert!(!POOL.enabled());
    trail::set_categories("")?;
    drop(Region::new_in(&POOL, 0, name!("pool is on")));
    assert!(trail::set_categories(&"x".repeat(1000)).is_err());
    drop(request);
    if file.is_some() {
        trail::stop()?;
    }
    Ok(())
}
