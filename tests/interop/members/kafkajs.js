// A member of a group with kafkajs. It is told its job and its orders, and tells its lines, as
// journal.py says; process.hrtime is the same clock as Python's time.monotonic.
'use strict'

const { writeSync } = require('node:fs')
const { createInterface } = require('node:readline')
const { Kafka, logLevel } = require('kafkajs')

const ABANDONED = 70
// What is read, told and committed at a time.
const CHUNK = 250
const HEARTBEATS_PER_SESSION = 6
const MAX_WAIT_MS = 100

function tell(what, facts = {}) {
  // BigInt has no JSON; the number is put in as digits.
  const rest = JSON.stringify({ what, ...facts }).slice(1)
  writeSync(1, `{"ns": ${process.hrtime.bigint()}, ${rest}\n`)
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms) })

function member(job) {
  const kafka = new Kafka({
    clientId: 'kafkajs', brokers: job.bootstrap.split(','), logLevel: logLevel.NOTHING,
  })
  const consumer = kafka.consumer({
    groupId: job.group,
    sessionTimeout: job.session_ms,
    heartbeatInterval: job.session_ms / HEARTBEATS_PER_SESSION,
    rebalanceTimeout: job.session_ms,
    maxWaitTimeInMs: MAX_WAIT_MS,
    ...job.settings,
  })
  let owned = []
  let isLeaving = false
  let next = performance.now()

  function revoke() {
    if (owned.length) tell('revoked', { partitions: owned })
    owned = []
  }

  consumer.on(consumer.events.REBALANCING, revoke)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    // A member that the coordinator forgot joins again without another word.
    revoke()
    // A rebalance may be under way when it leaves; of what that gives it, it reads nothing.
    if (isLeaving) return
    owned = payload.memberAssignment[job.topic] || []
    tell('assigned', { partitions: owned })
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    revoke()
    console.error(payload.error)
    if (!payload.restart) process.exit(1)
  })

  async function eachBatch({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary, isRunning, isStale }) {
    for (let start = 0; start < batch.messages.length; start += CHUNK) {
      if (isLeaving || !isRunning() || isStale()) return
      const chunk = batch.messages.slice(start, start + CHUNK)
      const [first, last] = [chunk[0], chunk[chunk.length - 1]].map((each) => Number(each.offset))
      if (last - first !== chunk.length - 1) throw new Error(`${chunk.length} from ${first} to ${last}`)
      tell('read', { offsets: [[batch.partition, first, last]] })
      resolveOffset(String(last))
      const partitions = [{ partition: batch.partition, offset: String(last + 1) }]
      await commitOffsetsIfNecessary({ topics: [{ topic: job.topic, partitions }] })
      tell('committed', { offsets: [[batch.partition, last + 1]] })
      next = Math.max(next, performance.now()) + chunk.length / job.per_second * 1000
      await pause(next - performance.now())
      await heartbeat()
    }
  }

  return {
    async start() {
      await consumer.connect()
      await consumer.subscribe({ topic: job.topic, fromBeginning: true })
      await consumer.run({ eachBatch, eachBatchAutoResolve: false, autoCommit: false })
    },
    async leave() {
      // To stop is to leave the group too, after the batch in hand, which reads nothing more.
      isLeaving = true
      tell('closing')
      await consumer.stop()
      await consumer.disconnect()
    },
  }
}

async function main() {
  let running
  const orders = createInterface({ input: process.stdin })
  // Whatever the client is waiting for.
  orders.on('close', () => process.exit(ABANDONED))
  for await (const line of orders) {
    if (line === 'leave') {
      await running.leave()
      process.exit(0)
    }
    running = member(JSON.parse(line))
    await running.start()
  }
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
