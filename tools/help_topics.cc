#include "thalweg/tools/help_topics.h"

#include "absl/strings/str_cat.h"
#include "thalweg/proto/dtype.h"

namespace thalweg::tools {
namespace {

constexpr char kInputs[] = R"(-i NAME=VALUE feeds the tensor NAME (NODE or NODE:PORT). VALUE is one of

  @x.npy                      an array
  @x.npz#key                  an array of an archive (without #key: the one called NAME)
  @x.raw:f32:1x224x224x3      bytes of a file, with type and shape
  @x.png:f32,nhwc,0..1        an image: element type, nhwc or nchw, gray, rgb or rgba, and the range of its values
  @x.pb                       a serialized TensorProto
  3.5   true   "a text"       a scalar; the graph says which type
  [[1,2],[3,4]]:i32           a tensor, here with its type
  zeros:f32:8x128             also ones; type and shape may be left out where the graph says them
  rand:f32:8x128[0,1)~42      uniform random numbers of a range and a seed
  randn:f32:8x128~42          normal random numbers

A bare -i @all.npz feeds every array of the archive under its key. A later -i of the same name replaces an earlier one.
bfloat16 is stored as uint16, float8 as uint8, quantized and 4-bit types as integers, strings as |S. Nothing is ever fed
unasked: --fill rand~SEED feeds the placeholders left over (bench does so by itself, and says it).
)";

constexpr char kScripts[] =
    R"(thalweg run GRAPH --script steps.json -o out.npz --json runs several steps in one session:

  {"format": "thalweg.script/1", "steps": [
    {"inputs": "in0.npz", "fetches": ["y:0"], "targets": ["train"], "timeout": 2.0, "name": "..."},
    {"extend": "graph2.pb"},                      adds the nodes of this graph to the session's graph
    {"new_session": true, "fetches": ["y:0"]},    a fresh session first: variables are gone
    {"close": true, "fetches": ["y:0"]}           closes the session first
  ]}

inputs is an archive with exactly this step's feeds; timeout is in seconds. All steps run in order; one that fails does
not end the script. The value of T in step k is saved as T#k. stdout then holds
  {"steps": [{"step": 0, "status": "OK"},
             {"step": 1, "status": "INVALID_ARGUMENT", "stage": "run", "message": "..."}]}
Exit code 1 if a step failed, 3 if the graph is refused.
)";

constexpr char kExitCodes[] = R"(  0  done
  1  a step failed; a fetch, feed or target that does not exist; a feed of a wrong type or shape
  2  unknown flag, malformed value, input file that cannot be read
  3  graph missing, garbled, truncated, refused; findings of inspect --check
  4  run --expect: a value is not as expected; bench --assert: a figure is out of bounds
  5  out of memory (RESOURCE_EXHAUSTED)
  6  out of time (DEADLINE_EXCEEDED)
  7  a device that is asked for is not there
130  interrupted

Every error line on stderr holds the code of the status, as in error: INVALID_ARGUMENT: ..., and a command to try next.
)";

constexpr char kNames[] = R"(NODE        the node's first output, NODE:0
NODE:PORT   another output
^NODE       a control edge: only in graphs, and in what inspect prints
RE          a regular expression (RE2 syntax) that matches a whole name, where a flag says RE

Names are printed as they can be pasted back.
)";

constexpr char kDevices[] =
    R"(-d CPU:0,CPU:1,GPU:0=sim    the devices that a session has; the first is a CPU, which feeds and fetches use
  CPU:N          devices of their own: each with its queue and its part of the graph, sharing the session's threads
  TYPE:N=sim     a simulated accelerator: memory and streams of its own, transfers as with real hardware
--pin 'RE=CPU:1'            nodes that match must run there, else an error
--placement p.json          a placement file (thalweg place --out), obeyed exactly; other nodes are placed as usual
--policy scatter~7          every node on a random device that can run it: a test of partitioning
--no-soft-placement         a node whose device is not there is an error (default: it moves to one that is)
)";

constexpr char kConfigFiles[] =
    R"(--dump-config f.toml writes the flags of a call; --config f.toml reads them again, so that a run can be repeated:

  verb = "run"
  arguments = ["model.pb"]
  input = ["image=@cat.png:f32,nhwc,0..1"]
  fetch = ["prob"]
  threads = 2
  soft-placement = false

Keys are the long names of flags, values strings, numbers, true or false, or arrays of them. Flags on the command line
come after those of the file: the last one wins, and those that add up are added. A GRAPH on the command line replaces
that of the file. Paths are relative to the folder in which the program runs.
)";

constexpr char kUnits[] = R"(times      5s, 250ms, 30us, 100ns, 2m; a bare number means seconds
memory     2GiB, 512MiB, 64KiB (powers of 1024), 2GB, 512MB (powers of 1000), 4096 (bytes)
shapes     8x224x224x3; a scalar is empty or the word scalar; ? where a size may stay open
lists      1,2,8 or first:last:step as in 1:8:2
in JSON    always nanoseconds (_ns) and bytes (_bytes)
)";

constexpr char kSignals[] = R"(SIGUSR1 while run, bench or profile runs steps prints to stderr what they are doing, and does not disturb them:

  kill -USR1 $(pidof thalweg)

  step 1, running for 12.005 s, of 8 nodes, for 'out:0'
    thread 0 runs 'while/MatMul' (MatMul on CPU:0) in iteration 17 of frame 'while/'
    'dequeue' (QueueDequeueV2 on CPU:0) waits for 1 of 1 elements of queue 'q' (it holds 0 of 32, is open; ...)
    'out' waits for 'dequeue'

The same is in the message of a step that --timeout ends. A step of conditionals or loops on one thread names the iterations of its
frames. SIGINT (Ctrl-C) and SIGTERM cancel the step: exit code 130; a second one ends the program at once.
)";

// Element types with their short names, from the one table that knows them.
std::string DTypeTopic() {
  std::string text = "name                 short    also\n";
  for (int n = 1; n <= kMaxValueDType; ++n) {
    const DType dtype = static_cast<DType>(n);
    const std::string name = DTypeName(dtype);
    std::string short_name;
    for (const char* candidate : {"f16", "f32", "f64", "bf16", "i2",  "i4",  "i8",  "i16",  "i32", "i64",
                                  "u2",  "u4",  "u8",  "u16",  "u32", "u64", "c64", "c128", "b",   "str"}) {
      const absl::StatusOr<DType> parsed = ParseDType(candidate);
      if (parsed.ok() && *parsed == dtype) short_name = candidate;
    }
    const std::string gap(name.size() < 20 ? 21 - name.size() : 1, ' ');
    const std::string gap2(short_name.size() < 8 ? 9 - short_name.size() : 1, ' ');
    absl::StrAppend(&text, name, gap, short_name, gap2, DTypeProtoName(dtype), "\n");
  }
  return text;
}

}  // namespace

const std::vector<HelpTopic>& HelpTopics() {
  static const auto* const topics = new std::vector<HelpTopic>{
      {"inputs", "how tensors are fed", kInputs},
      {"scripts", "several steps in one session", kScripts},
      {"names", "names of tensors and patterns of names", kNames},
      {"devices", "devices, pins, placement files, policies", kDevices},
      {"dtypes", "element types and their short names", DTypeTopic()},
      {"config-files", "repeating a call with --config", kConfigFiles},
      {"units", "times, amounts of memory, shapes, lists", kUnits},
      {"signals", "what a running step does; ending it", kSignals},
      {"exit-codes", "what the exit codes mean", kExitCodes},
  };
  return *topics;
}

}  // namespace thalweg::tools
