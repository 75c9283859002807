// rate-limiter-flexible's part of the comparison: does the orders of `src/protocol.rs`, one line of JSON each.
// Usage: driver.cjs ENDPOINT SETTING, with the packages of package.json on NODE_PATH.
'use strict';

const readline = require('node:readline');
const { DynamoDB } = require('@aws-sdk/client-dynamodb');
const { RateLimiterDynamo, RateLimiterRes } = require('rate-limiter-flexible');

const TABLE = 'rate-limiter-flexible';
const POINTS = { scarce: 10, plenty: 1e9 };
const [endpoint, setting] = process.argv.slice(2);

// As the documentation says for DynamoDB: the client is `DynamoDB`, and `inMemoryBlockOnConsumed` saves the requests of
// keys that are known to be used up. Connections are kept alive by the SDK's default.
async function open() {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const storeClient = new DynamoDB({ endpoint, region: 'us-east-1', credentials });
  const made = (limit, tableCreated) => new Promise((resolve, reject) => {
    const points = POINTS[limit];
    const block = setting === 'in-memory-block' ? { inMemoryBlockOnConsumed: points } : {};
    // `ttlSet`: whether somebody has switched the TTL on, so that no request asks.
    const options = { storeClient, tableName: TABLE, tableCreated, ttlSet: tableCreated, points, duration: 3600 };
    const limiter = new RateLimiterDynamo(
      { ...options, keyPrefix: limit, ...block },
      (error) => (error ? reject(error) : resolve(limiter)),
    );
  });
  // The first limiter creates the table if it is not there.
  return { scarce: await made('scarce', false), plenty: await made('plenty', true) };
}

// A denial is a rejection with RateLimiterRes; anything else is a failure.
async function decide(client, limit, key) {
  try {
    await client[limit].consume(key);
    return true;
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return false;
    throw refusal;
  }
}

const clients = [];

class Tally {
  allowed = 0;
  denied = 0;
  failed = 0;
  failure = null;
  latencies = [];

  async one(client, limit, key) {
    const asked = process.hrtime.bigint();
    try {
      if (await decide(client, limit, key)) this.allowed += 1;
      else this.denied += 1;
    } catch (error) {
      this.failed += 1;
      this.failure ??= String(error);
    }
    this.latencies.push(Number(process.hrtime.bigint() - asked) / 1e3);
  }

  told(elapsedNs) {
    const sorted = Float64Array.from(this.latencies).sort();
    const at = (share) => Math.round(sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? 0);
    const { allowed, denied, failed, failure } = this;
    return { allowed, denied, failed, failure, micros: Math.round(elapsedNs / 1e3), p50_us: at(0.5), p99_us: at(0.99) };
  }
}

async function measured(work) {
  const tally = new Tally();
  const began = process.hrtime.bigint();
  await work(tally);
  return tally.told(Number(process.hrtime.bigint() - began));
}

const orders = {
  async open({ clients: wanted }) {
    while (clients.length < wanted) clients.push(await open());
    return measured(async () => {});
  },
  decide({ keys, at_once: atOnce }) {
    const one = (tally, key, i) => tally.one(clients[i % clients.length], 'scarce', key);
    return measured(async (tally) => {
      if (atOnce) await Promise.all(keys.map((key, i) => one(tally, key, i)));
      else for (const [i, key] of keys.entries()) await one(tally, key, i);
    });
  },
  fill({ prefix, keys, callers }) {
    let next = 0;
    const caller = async (tally) => {
      while (next < keys) await tally.one(clients[0], 'plenty', `${prefix}${next++}`);
    };
    return measured((tally) => Promise.all(Array.from({ length: callers }, () => caller(tally))));
  },
  load({ prefix, keys, callers, seconds }) {
    const until = Date.now() + seconds * 1e3;
    const caller = async (tally) => {
      while (Date.now() < until) await tally.one(clients[0], 'plenty', `${prefix}${Math.floor(Math.random() * keys)}`);
    };
    return measured((tally) => Promise.all(Array.from({ length: callers }, () => caller(tally))));
  },
};

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { order, ...rest } = JSON.parse(line);
    process.stdout.write(`${JSON.stringify(await orders[order](rest))}\n`);
  }
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
