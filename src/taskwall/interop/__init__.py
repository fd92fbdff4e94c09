"""How taskwall speaks to other tools: set-up of coding agents' clients."""
