//! Where memory comes from in what is released, which is linked with musl. For all of the process:
//! these are C's own functions, which SQLite calls, and Rust too.
//!
//! musl's allocator asks the kernel for a little at a time, which a process that ends after one
//! message feels. Doug Lea's, of which glibc's is a descendant, asks for much and gives it out from
//! one end. Must never allocate itself, nor panic. A child between fork and exec must not allocate:
//! another thread may have held the lock.
#![allow(unsafe_code)]

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

static HEAP: Mutex<Dlmalloc<Pieces>> = Mutex::new(Dlmalloc::new_with_allocator(Pieces::new()));

/// What C aligns everything to that it is not asked to align.
const NATURAL: usize = 2 * size_of::<usize>();

fn heap() -> MutexGuard<'static, Dlmalloc<Pieces>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory in pieces that stay apart, though they may lie side by side: only a whole piece can be
/// given back, and of one large one some small thing is always in use.
struct Pieces {
    /// The mark of the next. Neighbours with different marks are not joined.
    mark: Cell<u32>,
}

impl Pieces {
    /// This version halves the mark of what is there before it compares it, so that neither of these
    /// is ever the same as another, nor as itself.
    const MARKS: [u32; 2] = [2, 8];

    const fn new() -> Self {
        Self {
            mark: Cell::new(Self::MARKS[0]),
        }
    }
}

// SAFETY: what is mapped is this process's own, nobody else has it, and it is zeros.
unsafe impl Allocator for Pieces {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        match unsafe { mmap_anonymous(ptr::null_mut(), size, access, MapFlags::PRIVATE) } {
            Ok(memory) => {
                let mark = self.mark.get();
                let [one, other] = Self::MARKS;
                self.mark.set(if mark == one { other } else { one });
                (memory.cast(), size, mark)
            }
            Err(_) => (ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, memory: *mut u8, old: usize, new: usize) -> bool {
        unsafe { munmap(memory.add(new).cast(), old - new) }.is_ok()
    }

    fn free(&self, memory: *mut u8, size: usize) -> bool {
        unsafe { munmap(memory.cast(), size) }.is_ok()
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

/// What was allocated, or C's word that there is no more.
fn given(memory: *mut u8) -> *mut c_void {
    if memory.is_null() {
        // SAFETY: the place of this thread's error number, which is always there.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    memory.cast()
}

// SAFETY, for all of them: musl allows its allocator to be replaced as long as all of it is, and a
// caller keeps to C's rules, which are those of the functions called here.

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    given(unsafe { heap().c_malloc(size) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(size) => given(unsafe { heap().calloc(size, NATURAL) }),
        None => given(ptr::null_mut()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    given(unsafe { heap().c_realloc(memory.cast(), size) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(memory: *mut c_void) {
    unsafe { heap().c_free(memory.cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if align.is_power_of_two() {
        given(unsafe { heap().c_memalign(align, size) })
    } else {
        unsafe { *libc::__errno_location() = libc::EINVAL };
        ptr::null_mut()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    unsafe { aligned_alloc(align, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    let memory = unsafe { heap().c_memalign(align, size) };
    if memory.is_null() {
        return libc::ENOMEM;
    }
    unsafe { *out = memory.cast() };
    0
}

/// Nobody calls it, and there is no answer; musl's would read what is not there.
#[unsafe(no_mangle)]
extern "C" fn malloc_usable_size(_: *mut c_void) -> usize {
    std::process::abort()
}

/// Gives memory that was used and is free again back to the system.
pub(crate) fn give_back() {
    // SAFETY: it touches nothing but free memory.
    unsafe { heap().trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written there, for as long as it is read back.
    unsafe fn fill(memory: *mut c_void, size: usize, byte: u8) -> *mut c_void {
        assert!(!memory.is_null());
        unsafe { memory.cast::<u8>().write_bytes(byte, size) };
        memory
    }

    unsafe fn holds(memory: *mut c_void, size: usize, byte: u8) -> bool {
        let bytes = unsafe { std::slice::from_raw_parts(memory.cast::<u8>(), size) };
        bytes.iter().all(|there| *there == byte)
    }

    #[test]
    fn memory_that_was_used_before_is_cleared_where_that_is_asked_for() {
        for size in [1, 24, 4_000, 300_000, 3_000_000] {
            unsafe {
                let used = fill(malloc(size), size, 7);
                free(used);
                let cleared = calloc(size, 1);
                assert!(holds(cleared, size, 0), "{size}");
                free(cleared);
            }
        }
    }

    #[test]
    fn what_grows_or_shrinks_keeps_its_content() {
        unsafe {
            let mut memory = realloc(ptr::null_mut(), 10);
            fill(memory, 10, 3);
            for size in [100, 70_000, 2_000_000, 50, 10] {
                memory = realloc(memory, size);
                assert!(holds(memory, 10, 3), "{size}");
            }
            free(realloc(memory, 0));
            free(ptr::null_mut());
        }
    }

    #[test]
    fn everything_is_aligned_as_asked() {
        for align in (3..=16).map(|power| 1 << power) {
            let mut memory = ptr::null_mut();
            unsafe {
                assert_eq!(posix_memalign(&raw mut memory, align, 100), 0);
                assert!(memory.addr().is_multiple_of(align), "{align}");
                free(fill(memory, 100, 1));
                let memory = aligned_alloc(align, 100);
                assert!(memory.addr().is_multiple_of(align), "{align}");
                free(fill(memory, 100, 1));
            }
        }
        let mut memory = ptr::null_mut();
        let refused = unsafe { posix_memalign(&raw mut memory, 24, 100) };
        assert_eq!(refused, libc::EINVAL);
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        unsafe {
            assert!(calloc(usize::MAX, 2).is_null());
            assert_eq!(*libc::__errno_location(), libc::ENOMEM);
            assert!(malloc(usize::MAX / 2).is_null());
            assert!(aligned_alloc(24, 1).is_null());
        }
    }

    #[test]
    fn threads_disturb_nobody_while_memory_is_given_back() {
        std::thread::scope(|scope| {
            for byte in 0..8 {
                scope.spawn(move || {
                    for round in 0..500 {
                        let size = 16 << (round % 12);
                        unsafe {
                            let memory = fill(malloc(size), size, byte);
                            give_back();
                            assert!(holds(memory, size, byte));
                            free(memory);
                        }
                    }
                });
            }
        });
    }
}
