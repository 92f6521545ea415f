// Makes admin calls of kafkajs, `node admin.js BOOTSTRAP`: for each line {"call": …, "arguments": …}
// on standard input prints {"value": …} or, where the broker refused, {"code": …, "message": …}.
'use strict'

const { createInterface } = require('node:readline')
const { AssignerProtocol, Kafka, logLevel } = require('kafkajs')

const TOPIC = 2
const BROKER = 4

async function configs(admin, type, name) {
  const told = await admin.describeConfigs({ resources: [{ type, name }] })
  const entries = told.resources[0].configEntries
  return Object.fromEntries(entries.map((entry) => [entry.configName, entry.configValue]))
}

const CALLS = {
  create_topic: async (admin, { topic, partitions = 2, replicas = 1, configs = {}, validate_only }) => {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const wanted = { topic, numPartitions: partitions, replicationFactor: replicas, configEntries }
    const isNew = await admin.createTopics({
      topics: [wanted], validateOnly: Boolean(validate_only), waitForLeaders: false,
    })
    // The one error that it does not throw.
    if (!isNew) throw Object.assign(new Error('the topic exists'), { code: 36 })
  },
  delete_topic: (admin, { topic }) => admin.deleteTopics({ topics: [topic] }),
  has_topic: async (admin, { topic }) => (await admin.listTopics()).includes(topic),
  describe_topic: async (admin, { topic }) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions
      .map((each) => [each.partitionId, each.leader, each.replicas, each.isr])
      .sort((one, other) => one[0] - other[0])
  },
  create_partitions: (admin, { topic, total }) =>
    admin.createPartitions({ topicPartitions: [{ topic, count: total }] }),
  topic_configs: (admin, { topic }) => configs(admin, TOPIC, topic),
  broker_config: async (admin, { key }) => {
    const ids = (await admin.describeCluster()).brokers.map((broker) => broker.nodeId)
    return (await configs(admin, BROKER, String(Math.min(...ids))))[key]
  },
  replace_configs: (admin, { topic, configs }) => {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    return admin.alterConfigs({ resources: [{ type: TOPIC, name: topic, configEntries }] })
  },
  cluster: async (admin) => {
    const { brokers, controller, clusterId } = await admin.describeCluster()
    return [brokers.length, brokers.some(({ nodeId }) => nodeId === controller), Boolean(clusterId)]
  },
  delete_records: async (admin, { topic, partition, before }) => {
    // Deleting finds leaders only among the topics that were asked for before.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    const told = await admin.fetchTopicOffsets(topic)
    return Number(told.find((each) => each.partition === partition).low)
  },
  list_offset: async (admin, { topic, partition, spec }) => {
    const told = spec < 0
      ? await admin.fetchTopicOffsets(topic)
      : await admin.fetchTopicOffsetsByTimestamp(topic, spec)
    const { low, offset } = told.find((each) => each.partition === partition)
    return Number(spec === -2 ? low : offset)
  },
  // Any user may read the topic; the numbers are topic, literal, read and allow, and 1 is any.
  acls: async (admin) => {
    const { resources } = await admin.describeAcls({
      resourceType: 1, resourcePatternType: 1, operation: 1, permissionType: 1,
    })
    return resources.length
  },
  create_acl: (admin, { topic }) => admin.createAcls({
    acl: [{
      resourceType: TOPIC, resourceName: topic, resourcePatternType: 3,
      principal: 'User:*', host: '*', operation: 3, permissionType: 3,
    }],
  }),
  delete_acls: (admin, { topic }) => admin.deleteAcls({
    filters: [{
      resourceType: TOPIC, resourceName: topic, resourcePatternType: 3,
      operation: 1, permissionType: 1,
    }],
  }),
  reassignments: async (admin) => {
    const { topics } = await admin.listPartitionReassignments({})
    return topics.map((each) => each.name)
  },
  list_groups: async (admin) => {
    const { groups } = await admin.listGroups()
    return Object.fromEntries(groups.map((each) => [each.groupId, { protocol: each.protocolType }]))
  },
  describe_group: async (admin, { group }) => {
    // Finding a coordinator needs brokers, which only some of its calls look up themselves.
    await admin.listGroups()
    const { groups: [told] } = await admin.describeGroups([group])
    return {
      state: told.state.toUpperCase(),
      protocol: told.protocolType,
      assignor: told.protocol,
      members: told.members.map((each) => ({ host: each.clientHost, reads: reads(each) })),
    }
  },
  delete_groups: async (admin, { groups }) => {
    const told = Object.fromEntries(groups.map((group) => [group, 0]))
    try {
      await admin.deleteGroups(groups)
    } catch (error) {
      if (!error.groups) throw error
      for (const each of error.groups) told[each.groupId] = each.errorCode
    }
    return told
  },
  list_group_offsets: async (admin, { group, topics }) => {
    await admin.listGroups()
    const told = await admin.fetchOffsets({ groupId: group, topics })
    return told.flatMap(({ topic, partitions }) =>
      partitions.map((each) => [topic, each.partition, each.offset]))
  },
  alter_group_offsets: (admin, { group, topic, partitions }) =>
    admin.setOffsets({ groupId: group, topic, partitions }),
}

function reads({ memberAssignment }) {
  if (memberAssignment.length === 0) return []
  const { assignment } = AssignerProtocol.MemberAssignment.decode(memberAssignment)
  return Object.entries(assignment).flatMap(([topic, parts]) => parts.map((part) => [topic, part]))
}

// It wraps the broker's error in others, one for each topic or partition.
function codes(error) {
  if (!error) return []
  if (typeof error.code === 'number') return [error.code]
  return [error.cause, error.error, ...(error.errors || []), ...(error.partitions || [])].flatMap(codes)
}

function code(error) {
  const [found] = codes(error)
  if (found === undefined) throw error
  return found
}

async function answer(kafka, { call, arguments: given }) {
  // A client of its own for each call: it would ask for all topics that it ever heard of.
  const admin = kafka.admin()
  await admin.connect()
  try {
    const value = await CALLS[call](admin, given)
    return { value: value === undefined ? null : value }
  } catch (error) {
    return { code: code(error), message: error.message }
  } finally {
    await admin.disconnect()
  }
}

async function main() {
  const brokers = process.argv[2].split(',')
  const settings = { brokers, logLevel: logLevel.NOTHING, retry: { retries: 0 } }
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(new Kafka(settings), JSON.parse(line))))
  }
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
