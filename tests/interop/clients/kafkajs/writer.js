// Writes with kafkajs what comes on standard input, one JSON document to a line: first how and
// where, then records as [partition, timestamp, key, value, headers], all content in base64.
'use strict'

const { createInterface } = require('node:readline')
const { CompressionTypes, Kafka, Partitioners, logLevel } = require('kafkajs')
const codecs = require('./codecs')

// A batch of one partition must stay below what a topic takes by default.
const BATCH_BYTES = 920_000
const BATCH_RECORDS = 500

const CODECS = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }

function content(text) {
  return text === null ? null : Buffer.from(text, 'base64')
}

function message([partition, timestamp, key, value, pairs]) {
  const headers = {}
  for (const [name, text] of pairs) {
    // A name that comes twice has a list for its content.
    headers[name] = name in headers ? [headers[name], content(text)].flat() : content(text)
  }
  const built = { partition, timestamp: String(timestamp), key: content(key), value: content(value) }
  return { ...built, headers }
}

function * batches(messages) {
  let batch = []
  let bytes = 0
  for (const each of messages) {
    const size = each.value ? each.value.length : 0
    if (batch.length === BATCH_RECORDS || (batch.length && bytes + size > BATCH_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(each)
    bytes += size
  }
  if (batch.length) yield batch
}

async function main() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const { bootstrap, topic, codec, idempotent } = JSON.parse((await lines.next()).value)
  const messages = []
  for await (const line of lines) messages.push(message(JSON.parse(line)))
  await codecs.ready()
  const brokers = bootstrap.split(',')
  const kafka = new Kafka({ clientId: 'kafkajs', brokers, logLevel: logLevel.ERROR })
  const createPartitioner = Partitioners.LegacyPartitioner
  const producer = kafka.producer({ idempotent, createPartitioner, maxInFlightRequests: 1 })
  await producer.connect()
  for (const batch of batches(messages)) {
    const compression = CompressionTypes[CODECS[codec]]
    await producer.send({ topic, messages: batch, acks: -1, compression })
  }
  await producer.disconnect()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
