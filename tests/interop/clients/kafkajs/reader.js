// Reads all partitions of a topic with kafkajs, whose consumer needs a group, and prints one JSON row
// per record. It ends when it has read as many records of the key `end` as it is told.
'use strict'

const { writeSync } = require('node:fs')
const { Kafka, logLevel } = require('kafkajs')
const codecs = require('./codecs')

const text = (content) => (content === null ? null : content.toString('base64'))

async function main() {
  await codecs.ready()
  const { bootstrap, topic, group, end, count } = JSON.parse(process.argv[2])
  const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
  const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 50 })
  let left = count
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    console.error(payload.error)
    process.exit(1)
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message: { offset, timestamp, key, value } }) => {
      const row = [partition, Number(offset), Number(timestamp), text(key), text(value)]
      writeSync(1, `${JSON.stringify(row)}\n`)
      if (key.toString() === end) left -= 1
      if (left === 0) process.exit(0)
    },
  })
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
