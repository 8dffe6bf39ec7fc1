// A model that does what a script says, so that the real agent runs offline. PI_FAUX_SCRIPT is a list of
// steps, one an answer of the model: {"calls":[{id,name,args}]} or {"text":""}; "first" is a shell command
// that is run before the step. PI_FAUX_LOG gets a line for each step: the tools and the messages that
// a model would have been sent.
import { execFileSync } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { fauxAssistantMessage, fauxText, fauxToolCall, getApiProvider, registerFauxProvider } from "@mariozechner/pi-ai";

type Step = { first?: string; text?: string; calls?: { id: string; name: string; args: any }[] };

const MODEL = { id: "faux-1", name: "Faux", reasoning: false, input: ["text" as const], contextWindow: 128000, maxTokens: 16384,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };

export default function (pi: any) {
  const steps: Step[] = JSON.parse(readFileSync(process.env.PI_FAUX_SCRIPT!, "utf8"));
  const faux = registerFauxProvider({ api: "faux-inner", provider: "faux" });
  const inner = getApiProvider("faux-inner") as any;
  faux.setResponses(steps.map((step, number) => (context: any) => {
    appendFileSync(process.env.PI_FAUX_LOG!, JSON.stringify({ number, tools: context.tools, messages: context.messages,
      systemPrompt: context.systemPrompt }) + "\n");
    if (step.first) execFileSync("sh", ["-c", step.first]);
    const content = step.calls ? step.calls.map((call) => fauxToolCall(call.name, call.args, { id: call.id })) : fauxText(step.text!);
    return fauxAssistantMessage(content, { stopReason: step.calls ? "toolUse" : "stop" });
  }));
  // Another name than the inner one's, which would call itself.
  pi.registerProvider("faux", { baseUrl: "http://localhost:0", apiKey: "none", api: "faux-api", models: [MODEL],
    streamSimple: (model: any, context: any, options: any) => inner.streamSimple({ ...model, api: "faux-inner" }, context, options) });
}
