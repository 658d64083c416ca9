// The real pi with the real pi-subagents, and a scripted model on loopback.
//   node parent.mjs FOLDER SECONDS [workflow]
// Everything lives in FOLDER: home/, project/, root/ (the run root), model.log (one JSON line a request). The model tells
// pi to launch the agent "scout", whose model then calls the shell four times, SECONDS each. With `workflow` the child
// stays a child of this parent. Prints one JSON line when pi has been told; ends, with all that it started, when its
// standard input is closed.
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

const [folder, seconds, kind] = process.argv.slice(2);
const { SUBDECK_REAL_PI_CLI: cli, SUBDECK_REAL_PI_SUBAGENTS: extension } = process.env;
const at = (...names) => path.join(folder, ...names);
for (const name of ["home/.pi/agent", "project", "root"]) fs.mkdirSync(at(name), { recursive: true });

const text = (content) => typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");
const agents = { launch: "Please launch the scout.", work: "Take the four steps." };

/// What the model does next: by the newest task in the conversation, and by how often it has answered since.
function turn(messages) {
	const task = messages.findLastIndex((m) => m.role === "user" && Object.values(agents).some((t) => text(m.content).includes(t)));
	if (task < 0) return { say: "There is nothing to do." };
	const since = messages.slice(task + 1);
	const answered = since.filter((m) => m.role === "assistant").length;
	const last = messages.at(-1);
	const heard = last.role === "user" && since.includes(last) ? `I was told: <<${text(last.content)}>> ` : "";
	if (text(messages[task].content).includes(agents.work)) {
		if (answered >= 4) return { say: `${heard}All four steps are done.` };
		return { say: `${heard}Step ${answered + 1}.`, tool: "bash", args: { command: `sleep ${seconds}; echo step ${answered + 1}` } };
	}
	if (answered > 0) return { say: "The scout is at work." };
	const child = { agent: "scout", task: agents.work };
	if (kind === "workflow") {
		return { say: "Launching.", tool: "subagent", args: { workflowScript: `return await runs.run('main', ${JSON.stringify({ ...child, async: false })})`, async: true } };
	}
	return { say: "Launching.", tool: "subagent", args: { ...child, async: true } };
}

let requests = 0;
const model = http.createServer(async (request, response) => {
	if (request.method !== "POST") return response.end(JSON.stringify({ object: "list", data: [{ id: "scripted", object: "model" }] }));
	let body = "";
	for await (const chunk of request) body += chunk;
	const { messages = [] } = JSON.parse(body);
	fs.appendFileSync(at("model.log"), JSON.stringify({ at: Date.now(), last: text(messages.at(-1)?.content) }) + "\n");
	const number = ++requests;
	const { say, tool, args } = turn(messages);
	const chunk = (delta, finish_reason = null) => ({ id: `r-${number}`, object: "chat.completion.chunk", created: 0, model: "scripted", choices: [{ index: 0, delta, finish_reason }] });
	const send = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
	response.writeHead(200, { "content-type": "text/event-stream" });
	send(chunk({ role: "assistant", content: say }));
	if (tool) send(chunk({ tool_calls: [{ index: 0, id: `call-${number}`, type: "function", function: { name: tool, arguments: JSON.stringify(args) } }] }));
	send(chunk({}, tool ? "tool_calls" : "stop"));
	send({ ...chunk({}), choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } });
	response.end("data: [DONE]\n\n");
});

model.listen(0, "127.0.0.1", () => {
	const provider = {
		baseUrl: `http://127.0.0.1:${model.address().port}/v1`, api: "openai-completions", apiKey: "none",
		compat: { supportsDeveloperRole: false, supportsReasoningEffort: false },
		models: [{ id: "scripted", name: "Scripted", reasoning: false, input: ["text"], contextWindow: 128000, maxTokens: 16000, cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1 } }],
	};
	fs.writeFileSync(at("home/.pi/agent/models.json"), JSON.stringify({ providers: { scripted: provider } }));
	const env = { ...process.env, HOME: at("home"), PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0", PI_SUBAGENTS_TEMP_ROOT: at("root") };
	const pi = spawn(process.execPath, [cli, "--provider", "scripted", "--model", "scripted", "--offline", "-e", path.join(extension, "index.ts"), "--mode", "rpc"], { cwd: at("project"), env, stdio: ["pipe", "pipe", "inherit"] });
	pi.stdout.on("data", (data) => fs.appendFileSync(at("pi.jsonl"), data));
	pi.stdin.write(JSON.stringify({ id: "p1", type: "prompt", message: agents.launch }) + "\n");
	console.log(JSON.stringify({ root: at("root"), pid: pi.pid }));
	const leave = () => { pi.kill("SIGTERM"); setTimeout(() => { pi.kill("SIGKILL"); process.exit(0); }, 1500).unref(); };
	pi.on("exit", () => process.exit(0));
	process.stdin.on("end", leave).resume();
	process.on("SIGTERM", leave);
});
