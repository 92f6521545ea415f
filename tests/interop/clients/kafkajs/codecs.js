// Teaches kafkajs the codecs that it leaves to other packages. `ready` must have come to its end
// before one of them is used.
'use strict'

const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4js')
const zstd = require('@bokuweb/zstd-wasm')

CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => independent(Buffer.from(lz4.compress(encoder.buffer))),
  decompress: async (buffer) => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
})

// Kafka takes only frames whose blocks stand alone. Ours have one block of at most 4 MB, so they do;
// lz4js does not say so, and what it says is under the header's checksum.
function independent(frame) {
  if (frame.readUIntBE(4, 2) !== 0x4070) throw new Error('lz4js writes another header by now')
  frame[4] |= 0x20
  frame[6] = 0x73
  return frame
}

module.exports = { ready: () => zstd.init() }
