// SHA-256 for the proof of work and for passwords. Browsers have none of their own on plain http.
// Loaded when a reader begins to write, or signs in; by /admin too.
// In order: Hash, Proof of work, Passwords.

// -- Hash ---------------------------------------------------------------------

/** SHA-256 (FIPS 180-4), and the search for a proof. A worker gets this function as text, so it
    uses nothing from outside. */
function makeHash() {
  const schedule = new Int32Array(64)
  const primes = []
  for (let n = 2; n < 312; n++) {
    if (primes.every(prime => n % prime)) primes.push(n)
  }
  const START = primes.map(n => n ** .5 * 2 ** 32 | 0)
  const ROUNDS = primes.map(n => n ** (1 / 3) * 2 ** 32 | 0)

  const rotate = (n, by) => n >>> by | n << 32 - by

  /** The 16 words of the block, and 48 that follow from them. */
  function expand(block) {
    for (let i = 0; i < 16; i++) schedule[i] = block[i]
    for (let i = 16; i < 64; i++) {
      const x = schedule[i - 15]
      const y = schedule[i - 2]
      const low = rotate(x, 7) ^ rotate(x, 18) ^ x >>> 3
      const high = rotate(y, 17) ^ rotate(y, 19) ^ y >>> 10
      schedule[i] = schedule[i - 16] + schedule[i - 7] + low + high | 0
    }
  }

  /** The state after a block of 16 words of 32 bits. */
  function sha256(state, block) {
    expand(block)
    // Five times as fast as [a, b, …] = state.
    let {0: a, 1: b, 2: c, 3: d, 4: e, 5: f, 6: g, 7: k} = state
    for (let i = 0; i < 64; i++) {
      const choice = e & f ^ ~e & g
      const majority = a & b ^ a & c ^ b & c
      const high = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const low = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
      const one = k + ROUNDS[i] + schedule[i] + choice + high | 0
      const two = one + majority + low | 0
      k = g
      g = f
      f = e
      e = d + one | 0
      d = c
      c = b
      b = a
      a = two
    }
    return [a, b, c, d, e, f, g, k].map((n, i) => n + state[i] | 0)
  }

  const hex = words => words.map(n => (n >>> 0).toString(16).padStart(8, 0)).join('')
  const words = text => text.match(/.{8}/g).map(n => parseInt(n, 16) | 0)

  /** Looks for the counter, from one and to before another, whose hash begins as is asked for. */
  function search({salt, nonce, keyPrefix}, from, to) {
    const wanted = words(keyPrefix)
    const block = [...words(salt + nonce), 0, 1 << 31, 0, 0, 0, 0, 0, 288]
    for (block[8] = from; block[8] < to; block[8]++) {
      const key = sha256(START, block)
      if (wanted.every((word, i) => word === key[i])) {
        return {counter: block[8], derivedKey: hex(key)}
      }
    }
  }

  return {START, hex, search, sha256}
}

const {START, hex, search, sha256} = makeHash()

// -- Proof of work ------------------------------------------------------------

/** Searches in a worker, which gets the hash as text. */
const searchInWorker = parameters => new Promise((resolve, reject) => {
  const text = `onmessage = ({data}) => postMessage((${makeHash})().search(data, 0, 1e6))`
  const url = URL.createObjectURL(new Blob([text]))
  const worker = new Worker(url)
  worker.onerror = reject
  worker.onmessage = ({data}) => {
    resolve(data)
    worker.terminate()
    URL.revokeObjectURL(url)
  }
  worker.postMessage(parameters)
})

/** Searches in slices, so that the page stays alive. */
async function searchInSlices(parameters) {
  for (let from = 0; ; from += 2000) {
    const solution = search(parameters, from, from + 2000)
    if (solution) return solution
    await new Promise(resolve => setTimeout(resolve))
  }
}

/** The captcha token for a challenge of the service. */
export async function solve({parameters, signature}) {
  // A page may forbid workers by its Content-Security-Policy.
  const solution = await searchInWorker(parameters).catch(() => searchInSlices(parameters))
  return btoa(JSON.stringify({challenge: {parameters, signature}, solution}))
}

// -- Passwords ----------------------------------------------------------------

/** The SHA-256 of a text, in hex. Passwords leave the browser in this form only. */
export function digest(text) {
  const bytes = new TextEncoder().encode(text)
  const blocks = Math.ceil((bytes.length + 9) / 64)
  const padded = new DataView(new ArrayBuffer(64 * blocks))
  bytes.forEach((byte, i) => padded.setUint8(i, byte))
  padded.setUint8(bytes.length, 0x80)
  padded.setUint32(64 * blocks - 4, 8 * bytes.length)
  let state = START.slice(0, 8)
  for (let i = 0; i < blocks; i++) {
    state = sha256(state, Array.from({length: 16}, (_, word) => padded.getInt32(64 * i + 4 * word)))
  }
  return hex(state)
}
