// thalweg help: the verbs, one verb, or a topic.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/tools/help_topics.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

const CommandSpec& Spec() {
  static const auto* const spec =
      new CommandSpec{"help", "Explains a verb or a topic; without either lists them.",          "[VERB|TOPIC]", 0, 1,
                      {},     {"thalweg help run", "thalweg help inputs", "thalweg help topics"}};
  return *spec;
}

std::string TopicList() {
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  for (const HelpTopic& topic : HelpTopics()) table.AddRow({topic.name, topic.summary});
  return table.ToString("  ");
}

std::string Overview() {
  Table verbs({Table::Align::kLeft, Table::Align::kLeft});
  for (const Verb* verb : AllVerbs()) verbs.AddRow({verb->spec().verb, verb->spec().summary});
  return absl::StrCat(
      "thalweg VERB FILE... [flags]\nLoads dataflow graphs (TensorFlow GraphDef), places their nodes on devices and "
      "runs them.\n\n",
      verbs.ToString("  "), "\nthalweg help VERB explains a verb, thalweg help TOPIC one of these:\n\n", TopicList(),
      "\n  $ thalweg inspect model.pb\n  $ thalweg run model.pb -i image=@cat.png:f32,nhwc,0..1 -f prob\n"
      "  $ thalweg place model.pb -d CPU:0,CPU:1 -f prob\n");
}

int Unknown(const std::string& word, Console& console) {
  std::vector<std::string> words;
  for (const Verb* verb : AllVerbs()) words.push_back(verb->spec().verb);
  for (const HelpTopic& topic : HelpTopics()) words.push_back(topic.name);
  const std::vector<std::string> nearest = NearestWords(word, words);
  return console.Fail({absl::NotFoundError(absl::StrCat(
                           "no verb or topic '", word, "'",
                           nearest.empty() ? "" : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", ")))),
                       kExitUsage, "thalweg help"});
}

int Run(const Arguments& arguments, Console& console) {
  if (arguments.positional().empty()) {
    console.Print(Overview());
    return kExitOk;
  }
  const std::string& word = arguments.positional()[0];
  if (word == "topics") {
    console.Print(TopicList());
    return kExitOk;
  }
  if (const Verb* verb = FindVerb(word)) {
    console.Print(HelpText(verb->spec()));
    return kExitOk;
  }
  for (const HelpTopic& topic : HelpTopics()) {
    if (word != topic.name) continue;
    console.Print(topic.text);
    return kExitOk;
  }
  return Unknown(word, console);
}

}  // namespace

const Verb kHelpVerb{&Spec, &Run};

}  // namespace thalweg::tools
