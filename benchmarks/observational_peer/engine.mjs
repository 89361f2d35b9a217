// Mastra's own observational memory, driven line by line.
// It reads one JSON command per line from the standard input, and answers each with one line.
// Start it in a folder whose node_modules has @mastra/core, @mastra/memory and @mastra/libsql.
//
//   {"do": "open", "options": {...}}      a new memory; `options` is its `observationalMemory`
//   {"do": "turn", "threadId", "resourceId", "user": {...}, "answer": {...}}
//                                         one turn, with the calls that an agent of Mastra makes
//   {"do": "context", "threadId", "resourceId"}
//   {"do": "reflect" | "finalize", "threadId", "resourceId"}
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// The answers have the standard output to themselves.
console.log = console.info = console.debug = console.warn = console.error;

const require = createRequire(join(process.cwd(), 'package.json'));
const { Mastra } = require('@mastra/core');
const { MessageList } = require('@mastra/core/agent');
const { LibSQLStore } = require('@mastra/libsql');
const { Memory } = require('@mastra/memory');

let memory;
let engine;
let count = 0;

async function open({ options }) {
  count += 1;
  const storage = new LibSQLStore({ id: `store-${count}`, url: ':memory:' });
  memory = new Memory({ storage, options: { observationalMemory: options } });
  new Mastra({ storage, memory: { main: memory }, logger: false });
  engine = await memory.omEngine;
  return {};
}

async function findOrCreateThread(threadId, resourceId) {
  const thread = await memory.getThreadById({ threadId });
  return thread ?? memory.createThread({ threadId, resourceId, title: 'A thread' });
}

// What an agent does in a turn with one answer and no tool loop.
async function turn({ threadId, resourceId, user, answer }) {
  await findOrCreateThread(threadId, resourceId);
  const list = new MessageList({ threadId, resourceId });
  const running = engine.beginTurn({ threadId, resourceId, messageList: list });
  list.add(withDate(user), 'input');
  await running.start(memory);
  const step = await running.step(0).prepare();
  const seen = {
    system: step.systemMessage ?? null,
    messageIds: list.get.all.db().map((message) => message.id),
    // An agent's processor adds this message; the turn does not.
    continuation: (await context({ threadId, resourceId })).continuation,
  };
  list.add(withDate(answer), 'response');
  await running.end();
  await memory.settled();
  return { seen, ...(await describe(threadId, resourceId)) };
}

function withDate(message) {
  return { ...message, createdAt: new Date(message.createdAt) };
}

async function describe(threadId, resourceId) {
  const { record, ...status } = await engine.getStatus({ threadId, resourceId });
  const thread = await memory.getThreadById({ threadId });
  return { record, status, metadata: thread?.metadata?.mastra?.om ?? {} };
}

async function context({ threadId, resourceId }) {
  const found = await memory.getContext({ threadId, resourceId });
  return {
    system: found.systemMessage ?? null,
    messageIds: found.messages.map((message) => message.id),
    continuation: found.continuationMessage?.id ?? null,
    otherThreads: found.otherThreadsContext ?? null,
  };
}

async function reflect({ threadId, resourceId }) {
  const { reflected } = await engine.reflect(threadId, resourceId);
  return { reflected, ...(await describe(threadId, resourceId)) };
}

async function finalize({ threadId, resourceId }) {
  const { activated, observed, reflected } = await engine.finalize({ threadId, resourceId });
  await memory.settled();
  return { activated, observed, reflected, ...(await describe(threadId, resourceId)) };
}

const commands = { open, turn, context, reflect, finalize };
for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...command } = JSON.parse(line);
  let reply;
  try {
    reply = { result: await commands[name](command) };
  } catch (error) {
    reply = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
