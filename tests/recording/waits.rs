// Threads that wait until the program is ended, each for what it is called after: waits kinds|deadlock|crowd. See languages.py.
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;

struct Bank {
    accounts: Mutex<u64>,
    journal: Mutex<u64>,
    config: RwLock<u64>,
}

fn start<F: FnOnce() + Send + 'static>(name: &str, work: F) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.to_string()).spawn(work).unwrap()
}

#[inline(never)]
fn forward(bank: &Bank, both: &Barrier) {
    let first = bank.accounts.lock().unwrap();
    both.wait();
    let second = bank.journal.lock().unwrap();
    println!("{}", *first + *second);
}

#[inline(never)]
fn backward(bank: &Bank, both: &Barrier) {
    let first = bank.journal.lock().unwrap();
    both.wait();
    let second = bank.accounts.lock().unwrap();
    println!("{}", *first + *second);
}

fn deadlock() {
    let bank = Arc::new(Bank { accounts: Mutex::new(1), journal: Mutex::new(1), config: RwLock::new(1) });
    let both = Arc::new(Barrier::new(2));
    let (b, w) = (bank.clone(), both.clone());
    let one = start("forward", move || forward(&b, &w));
    let other = start("backward", move || backward(&bank, &both));
    one.join().unwrap();
    other.join().unwrap();
}

#[inline(never)]
fn with_locks(locks: &[Mutex<u64>], work: &dyn Fn()) {
    match locks.split_first() {
        None => work(),
        Some((first, others)) => {
            let held = first.lock().unwrap();
            with_locks(others, work);
            println!("{}", *held);
        }
    }
}

// A deadlock, and a wait for a holder of many locks that sleeps, of threads that are not looked at together: others were started between.
fn crowd() {
    let bank = Arc::new(Bank { accounts: Mutex::new(1), journal: Mutex::new(1), config: RwLock::new(1) });
    let both = Arc::new(Barrier::new(2));
    let (b, w) = (bank.clone(), both.clone());
    start("forward", move || forward(&b, &w));
    let config = bank.config.write().unwrap();
    for _ in 0..100 {
        start("parked", || thread::park());
    }
    let b = bank.clone();
    start("read", move || println!("{}", b.config.read().unwrap()));
    let b = bank.clone();
    start("backward", move || backward(&b, &both));
    let others: Vec<_> = (0..100).map(Mutex::new).collect();
    with_locks(&others, &|| thread::sleep(std::time::Duration::from_secs(100000)));
    println!("{}", *config);
}

static ONCE: Once = Once::new();

fn kinds() {
    let bank = Arc::new(Bank { accounts: Mutex::new(1), journal: Mutex::new(1), config: RwLock::new(1) });
    let accounts = bank.accounts.lock().unwrap();
    let config = bank.config.write().unwrap();
    let (never, receiver) = mpsc::channel::<u64>();
    let (sender, full) = mpsc::sync_channel::<u64>(1);
    sender.send(1).unwrap();
    let never_ready = Arc::new((Mutex::new(false), Condvar::new()));
    let barrier = Arc::new(Barrier::new(2));
    let (inside, entered) = mpsc::channel::<()>();
    let b = bank.clone();
    start("mutex", move || println!("{}", b.accounts.lock().unwrap()));
    let b = bank.clone();
    start("read", move || println!("{}", b.config.read().unwrap()));
    let b = bank.clone();
    start("write", move || println!("{}", b.config.write().unwrap()));
    start("condition", move || {
        let mut ready = never_ready.0.lock().unwrap();
        while !*ready {
            ready = never_ready.1.wait(ready).unwrap();
        }
    });
    start("barrier", move || {
        barrier.wait();
    });
    start("receive", move || println!("{:?}", receiver.recv()));
    start("send", move || println!("{:?}", sender.send(2)));
    start("park", || thread::park());
    start("first", move || ONCE.call_once(|| {
        inside.send(()).unwrap();
        loop {
            thread::park();
        }
    }));
    entered.recv().unwrap();
    let once = start("once", || ONCE.call_once(|| {}));
    once.join().unwrap();
    println!("{} {}", *accounts, *config);
    drop((never, full));
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("deadlock") => deadlock(),
        Some("crowd") => crowd(),
        _ => kinds(),
    }
}
