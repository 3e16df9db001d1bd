// The same from C++: the headers are C++17, and the symbols have C linkage.
#include <hem/hem.h>
#include <iostream>

int main() {
    hem_world *world = nullptr;
    if (hem_world_open(nullptr, &world) != HEM_OK) {
        std::cerr << "hem_world_open: " << hem_last_error() << '\n';
        return 1;
    }
    std::cout << "hem " << hem_version() << ": rank " << hem_world_rank(world) << " of "
              << hem_world_size(world) << '\n';
    return hem_world_close(world) == HEM_OK ? 0 : 1;
}
