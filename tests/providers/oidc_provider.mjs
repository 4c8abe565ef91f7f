// The provider of the package oidc-provider, with one client and one person, who signs in without
// being asked. `node oidc_provider.mjs REDIRECT_URL` prints its URL and serves until it is killed.

import {createServer} from 'node:http'
import {Provider} from 'oidc-provider'

const [redirectUrl] = process.argv.slice(2)
const server = createServer()
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const issuer = `http://127.0.0.1:${server.address().port}`

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'commentd-at-blog',
    client_secret: 'secret+of/this blog%',
    redirect_uris: [redirectUrl],
  }],
  claims: {email: ['email', 'email_verified'], profile: ['name']},
  features: {devInteractions: {enabled: false}},
  interactions: {url: (context, {uid}) => `/signing-in/${uid}`},
  findAccount: (context, accountId) => ({
    accountId,
    claims: () => ({
      sub: accountId, email: 'ann@example.com', email_verified: true, name: 'Ann of Node',
    }),
  }),
  cookies: {keys: ['of this test']},
})

/** Signs the person in, and lets the blog know who they are. */
async function signIn(request, response) {
  const {prompt, params, session} = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, {login: {accountId: 'Ann-1'}})
  }
  const grant = new provider.Grant({accountId: session.accountId, clientId: params.client_id})
  grant.addOIDCScope(params.scope)
  const consent = {grantId: await grant.save()}
  return provider.interactionFinished(request, response, {consent}, {mergeWithLastSubmission: true})
}

const serve = provider.callback()
server.on('request', (request, response) => {
  if (request.url.startsWith('/signing-in/')) signIn(request, response)
  else serve(request, response)
})
console.log(issuer)
