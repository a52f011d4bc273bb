# A program whose threads wait for what Ruby has: a Mutex, a Queue, a pipe, sleep, a child, and its lock of the virtual machine.
# Prints the same in each run.
def named(name)
  Thread.new do
    Thread.current.name = name
    yield
  end
end

# A thread of the system may be used again for a later one, which then gives it its name.
begin
  Thread.new { Thread.current.report_on_exception = false; raise "error" }.join
rescue RuntimeError => error
  p error.message
end

mutex = Mutex.new
queue = Queue.new
reader, writer = IO.pipe
started = Queue.new

mutex.lock
threads = [
  named("locks") { started << 1; mutex.synchronize { :locked } },
  named("pops") { started << 1; queue.pop },
  named("reads") { started << 1; reader.gets },
  named("sleeps") { started << 1; sleep 0.05; :slept },
  *2.times.map { |i| named("counts#{i}") { started << 1; n = 0; n += 1 while n < 6_000_000; n } }
]
threads.size.times { started.pop }
threads[3..].each(&:join)

# Whether it waits, in the kernel too.
def waits?(thread)
  thread.status == "sleep" && File.read("/proc/self/task/#{thread.native_thread_id}/stat").include?(") S ")
end
sleep 0.01 until threads[0..2].all? { |thread| waits?(thread) }
mutex.unlock
queue << :popped
writer.puts "read"
p threads.map(&:value)
p `echo child`
pid = fork { exit!(3) }
Process.wait pid
p $?.exitstatus
p Signal.trap("USR1") { queue << :signal }
Process.kill :USR1, Process.pid
p queue.pop
