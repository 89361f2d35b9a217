// Measure Mastra's own Memory on PostgreSQL with PgVector.
//   node mastra.mjs fill FOLDER     save all messages; prints {"seconds", "messages"}
//   node mastra.mjs measure FOLDER  recall for all questions; prints {"milliseconds": [...], "matches": [...]}
// FOLDER contains messages.jsonl, questions.jsonl, texts.jsonl and vectors.f32, which has the vector of each text.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Memory } from '@mastra/memory';
import { PgVector, PostgresStore } from '@mastra/pg';

const [command, folder] = process.argv.slice(2);
const readLines = (name) => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));

const raw = readFileSync(join(folder, 'vectors.f32'));
const floats = new Float32Array(raw.buffer, raw.byteOffset, raw.byteLength / 4);
const indexes = new Map(readLines('texts.jsonl').map((text, index) => [text, index]));
const dimensions = floats.length / indexes.size;

const precomputedEmbedder = {
  specificationVersion: 'v2',
  provider: 'benchmark',
  modelId: 'precomputed-vectors',
  maxEmbeddingsPerCall: 2048,
  supportsParallelCalls: true,
  async doEmbed({ values }) {
    const embeddings = values.map((text) => {
      const index = indexes.get(text);
      if (index === undefined) throw new Error(`no vector for: ${text}`);
      return Array.from(floats.subarray(index * dimensions, (index + 1) * dimensions));
    });
    return { embeddings, usage: { tokens: 0 } };
  },
};

const connectionString = process.env.PGURL;
const memory = new Memory({
  storage: new PostgresStore({ id: 'store', connectionString }),
  vector: new PgVector({ id: 'vector', connectionString }),
  embedder: precomputedEmbedder,
  options: { lastMessages: 10, semanticRecall: { topK: 4, messageRange: 1, scope: 'resource' } },
});
await memory.storage.init?.();

async function fill() {
  const threads = new Map();
  for (const message of readLines('messages.jsonl')) {
    if (!threads.has(message.threadId)) threads.set(message.threadId, []);
    threads.get(message.threadId).push(message);
  }
  for (const [threadId, [first]] of threads) await memory.createThread({ threadId, resourceId: first.resourceId });
  const started = performance.now();
  let count = 0;
  for (const messages of threads.values()) {
    await memory.saveMessages({
      messages: messages.map(({ text, createdAt, ...rest }) => ({
        ...rest,
        createdAt: new Date(createdAt),
        content: { format: 2, parts: [{ type: 'text', text }] },
      })),
    });
    count += messages.length;
  }
  return { seconds: (performance.now() - started) / 1000, messages: count };
}

async function measure() {
  const questions = readLines('questions.jsonl');
  const recall = ({ threadId, resourceId, text }, options = {}) => memory.recall({ threadId, resourceId, vectorSearchString: text, ...options });
  const warmUpCalls = Number(process.env.WARM_UP_CALLS);
  for (const question of questions.slice(0, warmUpCalls)) await recall(question);
  const milliseconds = [];
  for (const question of questions.slice(warmUpCalls)) {
    const started = performance.now();
    await recall(question);
    milliseconds.push(performance.now() - started);
  }
  const matchesOnly = { perPage: 0, threadConfig: { semanticRecall: { topK: 4, messageRange: 0, scope: 'resource' } } };
  const matches = [];
  for (const question of questions.slice(0, questions.length - warmUpCalls)) matches.push((await recall(question, matchesOnly)).messages.length);
  return { milliseconds, matches };
}

console.log(JSON.stringify(await { fill, measure }[command]()));
process.exit(0);
