import { queryOf } from './api.js'
import { useEffect, useState } from './vendor/hooks.js'

/**
 * The `#` part of the address names the page: every view has a link, and the server needs only one
 * page.
 */
export function href(parts, query = {}) {
  return `#/${parts.map(encodeURIComponent).join('/')}${queryOf(query)}`
}

export function useRoute() {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const follow = () => setHash(location.hash)
    window.addEventListener('hashchange', follow)
    return () => window.removeEventListener('hashchange', follow)
  }, [])
  return parse(hash)
}

/** Changes the view without a new entry in the history. */
export function replaceQuery(changes) {
  const { parts, query } = parse(location.hash)
  location.replace(href(parts, { ...query, ...changes }))
}

function parse(hash) {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode)
  return { parts, query: Object.fromEntries(new URLSearchParams(search)) }
}

function decode(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
