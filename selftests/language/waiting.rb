# SPDX-License-Identifier: GPL-2.0-or-later
#
# A program that waits in a known place, and says which.
#
#	waiting.rb FILE KIND
#
# KIND is how the place is reached (see the table below). It writes into FILE the ID of the thread that
# waits, and the functions and lines where that waits, as Ruby itself tells them. Functions that are written
# in C have the line 0. catch() is left out: its native function jumps to another one. Then it waits until it is killed.

# Notes where the caller of this function is, which is about to call sysread().
def tell
  places = caller_locations(1).reject { |place| place.label == 'catch' }
  words = places.map do |place|
    "#{place.label}@#{written_in_c(place) ? 0 : place.lineno}"
  end
  words.unshift('sysread@0')
  thread = File.readlink('/proc/thread-self')[/\d+\z/]
  File.write("#{ARGV[0]}.new", [thread, *words].join("\t") + "\n")
  File.rename("#{ARGV[0]}.new", ARGV[0])
end

# Ruby says that functions in C are where their caller is.
def written_in_c(place)
  %w[each eval map new sort].include?(place.label)
end

def wait
  tell; $stdin.sysread(1)
end

def deep(n)
  n > 0 ? deep(n - 1) : wait
end

class Key
  define_method(:made) { wait }
  def initialize(n) = n && wait
  def method_missing(*) = wait
  def respond_to_missing?(*) = true
  def <=>(_) = wait
end

KINDS = {
  'sort' => -> { [Key.new(nil), Key.new(nil)].sort },
  'map' => -> { [1].each { |v| [v].map { wait } } },
  'deep' => -> { deep(60) },
  'lambda' => -> { ->(v) { v.then { wait } }.call(1) },
  'missing' => -> { Key.new(nil).missing },
  'made' => -> { Key.new(1) },
  'defined' => -> { Key.new(nil).made },
  'fiber' => -> { Fiber.new { wait }.resume },
  'thread' => -> { Thread.new { catch(:never) { wait } }.join },
  'rescue' => lambda {
    begin
      raise 'wait'
    rescue StandardError
      [1].each { wait }
    end
  },
  'ensure' => lambda {
    begin
      Integer('wait')
    ensure
      wait
    end
  },
  'long' => lambda {
    v = 0
    eval("#{"v += 1\n" * 1000}wait", binding, __FILE__, 1000)
  }
}.freeze
KINDS[ARGV[1]].call
