// Mastra's own Memory on PostgreSQL with PgVector, filled and asked like ours.
//   node mastra.mjs fill FOLDER     save all messages; prints {"seconds", "messages"}
//   node mastra.mjs measure FOLDER  ask all questions; prints {"taken": [ms...], "hits": [...]}
// FOLDER holds texts.jsonl and vectors.f32 (a vector for each line), messages.jsonl and asked.jsonl.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Memory } from '@mastra/memory';
import { PgVector, PostgresStore } from '@mastra/pg';

const [command, folder] = process.argv.slice(2);
const lines = (name) => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));

const raw = readFileSync(join(folder, 'vectors.f32'));
const floats = new Float32Array(raw.buffer, raw.byteOffset, raw.byteLength / 4);
const places = new Map(lines('texts.jsonl').map((text, place) => [text, place]));
const length = floats.length / places.size;

const known = {
  specificationVersion: 'v2',
  provider: 'benchmark',
  modelId: 'known-vectors',
  maxEmbeddingsPerCall: 2048,
  supportsParallelCalls: true,
  async doEmbed({ values }) {
    const embeddings = values.map((text) => {
      const place = places.get(text);
      if (place === undefined) throw new Error(`no vector for: ${text}`);
      return Array.from(floats.subarray(place * length, (place + 1) * length));
    });
    return { embeddings, usage: { tokens: 0 } };
  },
};

const connectionString = process.env.PGURL;
const memory = new Memory({
  storage: new PostgresStore({ id: 'store', connectionString }),
  vector: new PgVector({ id: 'vector', connectionString }),
  embedder: known,
  options: { lastMessages: 10, semanticRecall: { topK: 4, messageRange: 1, scope: 'resource' } },
});
await memory.storage.init?.();

async function fill() {
  const threads = new Map();
  for (const message of lines('messages.jsonl')) {
    if (!threads.has(message.threadId)) threads.set(message.threadId, []);
    threads.get(message.threadId).push(message);
  }
  for (const [threadId, [first]] of threads) await memory.createThread({ threadId, resourceId: first.resourceId });
  const start = performance.now();
  let saved = 0;
  for (const messages of threads.values()) {
    await memory.saveMessages({
      messages: messages.map(({ text, createdAt, ...rest }) => ({
        ...rest,
        createdAt: new Date(createdAt),
        content: { format: 2, parts: [{ type: 'text', text }] },
      })),
    });
    saved += messages.length;
  }
  return { seconds: (performance.now() - start) / 1000, messages: saved };
}

async function measure() {
  const asked = lines('asked.jsonl');
  const ask = ({ threadId, resourceId, text }, more = {}) => memory.recall({ threadId, resourceId, vectorSearchString: text, ...more });
  const warmUp = Number(process.env.WARM_UP);
  for (const question of asked.slice(0, warmUp)) await ask(question);
  const taken = [];
  for (const question of asked.slice(warmUp)) {
    const start = performance.now();
    await ask(question);
    taken.push(performance.now() - start);
  }
  const alone = { perPage: 0, threadConfig: { semanticRecall: { topK: 4, messageRange: 0, scope: 'resource' } } };
  const hits = [];
  for (const question of asked.slice(0, asked.length - warmUp)) hits.push((await ask(question, alone)).messages.length);
  return { taken, hits };
}

console.log(JSON.stringify(await { fill, measure }[command]()));
process.exit(0);
